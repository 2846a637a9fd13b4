/* Counts what a program does to the files below one folder, and fails, cuts short or kills at a chosen one.
 *
 * Loaded with LD_PRELOAD, so that it stands between the C library and all that is above: Python, Arrow, Rust, our kernels.
 * A file of 64-bit words, mapped by every process of the program, holds the orders and the counts (see tests/faults/shim.py).
 * A call is a "change" if it alters a file or folder, "space" if it also needs room on the disk, and a "read" if it reads.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { READ, CHANGE, SPACE, CLASSES };
enum { COUNT, KILL, TEAR, ONCE, FROM, SHORT, STOP };
struct Orders {
    _Atomic long mode, kind, at, error, armed, hits, jump, looks, counts[CLASSES];
    char folder[1024], log[1024], hit[256];
};
static struct Orders* orders;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void attach(void) {
    const char* path = getenv("FAULTS_ORDERS");
    int saved = errno;
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
        void* mapped = mmap(NULL, sizeof(struct Orders), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) orders = mapped;
        close(file);
    }
    errno = saved;
}

static int is_below(const char* path) {
    size_t n = strlen(orders->folder);
    return strncmp(path, orders->folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

/* Where a path leads, as far as its text says: enough for paths that a program was given whole, or below its folder. */
static int counts_at(int at, const char* path, char* full) {
    if (!orders || !orders->armed || !path) return 0;
    if (path[0] == '/') {
        snprintf(full, 4096, "%s", path);
    } else {
        char base[4096], link[64];
        ssize_t n;
        if (at == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        n = readlink(link, base, sizeof base - 1);
        if (n < 0) return 0;
        base[n] = 0;
        snprintf(full, 4096, "%.2000s/%.2000s", base, path);
    }
    return is_below(full);
}

static int counts_fd(int fd, char* full) {
    char link[64];
    ssize_t n;
    int saved = errno;
    if (!orders || !orders->armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, full, 4095);
    errno = saved;
    if (n < 0) return 0;
    full[n] = 0;
    return is_below(full);
}

static void note(const char* call, const char* path, long number) {
    char line[4500];
    int saved = errno, file, n;
    if (!orders->log[0]) return;
    n = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
    file = (int)syscall(SYS_openat, AT_FDCWD, orders->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (syscall(SYS_write, file, line, (size_t)n) < 0) saved = errno;
        syscall(SYS_close, file);
    }
    errno = saved;
}

static void die(void) {
    kill(0, SIGKILL);
    pause();
}

/* Count a call; return 0 to let it be, -1 with errno to fail it, 1 to do a part of it (and to die then, if so ordered). */
static int meet(int kind, const char* call, const char* path) {
    long number = 0;
    for (int own = kind; own >= (kind == READ ? READ : CHANGE); own--) {
        long count = atomic_fetch_add(&orders->counts[own], 1) + 1;
        if (own == orders->kind) number = count;
        if (own == READ) break;
    }
    if (number == 0) return 0;
    note(call, path, number);
    if (orders->mode == COUNT || number < orders->at || (number > orders->at && orders->mode != FROM)) return 0;
    if (atomic_fetch_add(&orders->hits, 1) == 0) snprintf(orders->hit, sizeof orders->hit, "%s %.200s", call, path);
    if (orders->mode == KILL) die();
    if (orders->mode == STOP) {
        raise(SIGSTOP);
        return 0;
    }
    if (orders->mode == ONCE || orders->mode == FROM) {
        errno = (int)orders->error;
        return -1;
    }
    return 1;
}

static void torn(void) {
    if (orders->mode == TEAR) die();
}

#define MEET_PATH(kind, call, at, path) \
    char full[4096]; \
    int met = counts_at(at, path, full) ? meet(kind, call, full) : 0; \
    if (met < 0) return -1

#define MEET_FD(kind, call, fd) \
    char full[4096]; \
    int met = counts_fd(fd, full) ? meet(kind, call, full) : 0; \
    if (met < 0) return -1

/* After a call of which no part can be done: whole, and then dead if so ordered. */
#define DONE(type, call) \
    type result = call; \
    if (met > 0) torn(); \
    return result

#define SIMPLE(kind, name, at, path, parameters, arguments) \
    int name parameters { \
        REAL(name); \
        MEET_PATH(kind, #name, at, path); \
        DONE(int, real arguments); \
    }
#define SIMPLE_FD(kind, name, parameters, arguments) \
    int name parameters { \
        REAL(name); \
        MEET_FD(kind, #name, fd); \
        DONE(int, real arguments); \
    }

SIMPLE(CHANGE, rename, AT_FDCWD, to, (const char* from, const char* to), (from, to))
SIMPLE(CHANGE, renameat, b, to, (int a, const char* from, int b, const char* to), (a, from, b, to))
SIMPLE(CHANGE, renameat2, b, to, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags))
SIMPLE(CHANGE, unlink, AT_FDCWD, path, (const char* path), (path))
SIMPLE(CHANGE, unlinkat, at, path, (int at, const char* path, int flags), (at, path, flags))
SIMPLE(CHANGE, rmdir, AT_FDCWD, path, (const char* path), (path))
SIMPLE(SPACE, mkdir, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
SIMPLE(SPACE, mkdirat, at, path, (int at, const char* path, mode_t mode), (at, path, mode))
SIMPLE(SPACE, symlink, AT_FDCWD, path, (const char* what, const char* path), (what, path))
SIMPLE(SPACE, link, AT_FDCWD, to, (const char* from, const char* to), (from, to))
SIMPLE(CHANGE, chmod, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
SIMPLE(CHANGE, fchmodat, at, path, (int at, const char* path, mode_t mode, int flags), (at, path, mode, flags))
SIMPLE(SPACE, truncate, AT_FDCWD, path, (const char* path, off_t size), (path, size))
SIMPLE_FD(CHANGE, fchmod, (int fd, mode_t mode), (fd, mode))
SIMPLE_FD(CHANGE, fsync, (int fd), (fd))
SIMPLE_FD(CHANGE, fdatasync, (int fd), (fd))
SIMPLE_FD(SPACE, ftruncate, (int fd, off_t size), (fd, size))
SIMPLE_FD(SPACE, ftruncate64, (int fd, off64_t size), (fd, size))
SIMPLE_FD(SPACE, fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size))
SIMPLE_FD(SPACE, posix_fallocate, (int fd, off_t offset, off_t size), (fd, offset, size))

#define IS_OUTPUT(flags) (((flags) & (O_CREAT | O_TRUNC)) || ((flags) & O_ACCMODE) != O_RDONLY)
#define OPEN(name) \
    int name(const char* path, int flags, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (!IS_OUTPUT(flags)) return real(path, flags, mode); \
        MEET_PATH(flags & O_CREAT ? SPACE : CHANGE, #name, AT_FDCWD, path); \
        DONE(int, real(path, flags, mode)); \
    }
#define OPENAT(name) \
    int name(int at, const char* path, int flags, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (!IS_OUTPUT(flags)) return real(at, path, flags, mode); \
        MEET_PATH(flags & O_CREAT ? SPACE : CHANGE, #name, at, path); \
        DONE(int, real(at, path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name) \
    FILE* name(const char* path, const char* mode) { \
        REAL(name); \
        char full[4096]; \
        int output = strpbrk(mode, "wa+") != NULL && counts_at(AT_FDCWD, path, full); \
        int met = output ? meet(SPACE, #name, full) : 0; \
        if (met < 0) return NULL; \
        DONE(FILE*, real(path, mode)); \
    }
FOPEN(fopen)
FOPEN(fopen64)

/* A part of a buffer: one byte at least, so that who asks again comes to the end. */
static size_t part(int met, size_t size) {
    return met > 0 && size > 1 ? size / 2 : size;
}

#define MOVE(kind, name, parameters, arguments) \
    ssize_t name parameters { \
        REAL(name); \
        MEET_FD(kind, #name, fd); \
        size = part(met, size); \
        DONE(ssize_t, real arguments); \
    }
MOVE(SPACE, write, (int fd, const void* data, size_t size), (fd, data, size))
MOVE(SPACE, pwrite, (int fd, const void* data, size_t size, off_t offset), (fd, data, size, offset))
MOVE(SPACE, pwrite64, (int fd, const void* data, size_t size, off64_t offset), (fd, data, size, offset))
MOVE(READ, read, (int fd, void* data, size_t size), (fd, data, size))
MOVE(READ, pread, (int fd, void* data, size_t size, off_t offset), (fd, data, size, offset))
MOVE(READ, pread64, (int fd, void* data, size_t size, off64_t offset), (fd, data, size, offset))
MOVE(SPACE, sendfile, (int fd, int from, off_t* offset, size_t size), (fd, from, offset, size))
MOVE(SPACE, sendfile64, (int fd, int from, off64_t* offset, size_t size), (fd, from, offset, size))
MOVE(SPACE, copy_file_range, (int from, off64_t* a, int fd, off64_t* b, size_t size, unsigned flags), (from, a, fd, b, size, flags))

ssize_t writev(int fd, const struct iovec* pieces, int count) {
    REAL(writev);
    MEET_FD(SPACE, "writev", fd);
    if (met > 0 && count > 0) {
        struct iovec first = {pieces[0].iov_base, part(met, pieces[0].iov_len)};
        DONE(ssize_t, real(fd, &first, 1));
    }
    return real(fd, pieces, count);
}

ssize_t readv(int fd, const struct iovec* pieces, int count) {
    REAL(readv);
    MEET_FD(READ, "readv", fd);
    if (met > 0 && count > 0) {
        struct iovec first = {pieces[0].iov_base, part(met, pieces[0].iov_len)};
        DONE(ssize_t, real(fd, &first, 1));
    }
    return real(fd, pieces, count);
}

static int maps_output(int protection, int flags, int fd, char* full) {
    return (flags & MAP_SHARED) && (protection & PROT_WRITE) && fd >= 0 && counts_fd(fd, full);
}

#define MAP(name, offset_t) \
    void* name(void* where, size_t size, int protection, int flags, int fd, offset_t offset) { \
        REAL(name); \
        char full[4096]; \
        int met = maps_output(protection, flags, fd, full) ? meet(SPACE, #name, full) : 0; \
        if (met < 0) return MAP_FAILED; \
        DONE(void*, real(where, size, protection, flags, fd, offset)); \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)

/* A wall clock that is wrong at every other look. */
static long jumped(void) {
    return orders && orders->armed && orders->jump && atomic_fetch_add(&orders->looks, 1) % 2 ? orders->jump : 0;
}

int clock_gettime(clockid_t id, struct timespec* now) {
    REAL(clock_gettime);
    int result = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += jumped();
    return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    REAL(gettimeofday);
    int result = real(now, zone);
    now->tv_sec += jumped();
    return result;
}

time_t time(time_t* where) {
    REAL(time);
    time_t now = real(NULL) + jumped();
    if (where) *where = now;
    return now;
}
