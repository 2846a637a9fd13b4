// Python's face of the readers: states, steps, and short texts in one call. A step costs less than letting go of the GIL and
// taking it again, so only what may take long does that.
#include "bindings_reader.hpp"

#include <atomic>

namespace lmgauge {
namespace {

constexpr std::size_t kShort = 2048;      // bytes of a text that is scored at once
constexpr std::size_t kTexts = 128;    // texts of many
constexpr std::size_t kOrders = 64;       // of models whose states fit the stack
constexpr double kRounding = 1e-6;        // of products of single-precision numbers: a probability above one by less is one
constexpr double kLog10E = 0.43429448190325182765;

std::uint64_t next_owner() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

float as_log10(double logprob) { return static_cast<float>(logprob * kLog10E); }

// Two states in turn: that before a word, and that behind it.
class Turn {
  public:
    explicit Turn(std::size_t order) {
        if (order > kOrders) more_.resize(2 * order);
        Cell* const cells = more_.empty() ? few_.data() : more_.data();
        before_ = cells;
        behind_ = cells + order;
    }
    Cell* before() { return before_; }
    Step step(const NgramReader& reader, std::uint32_t word) {
        const Step step = reader.step(before_, word, behind_);
        std::swap(before_, behind_);
        return step;
    }

  private:
    std::array<Cell, 2 * kOrders> few_;
    std::vector<Cell> more_;
    Cell *before_, *behind_;
};

nb::handle state_type() {
    static const nb::handle type = nb::type<State>();
    return type;
}

// A text as the encoder takes it: one segment, not cut yet.
struct OneSegment {
    std::int64_t start = 0, end;
    explicit OneSegment(std::string_view text) : end(static_cast<std::int64_t>(text.size())), text_(text) {}
    SegmentText view() const {
        return {{reinterpret_cast<const std::uint8_t*>(text_.data()), text_.size()}, {&start, 1}, {&end, 1}, {}, {}, {}, {}, {}};
    }

  private:
    std::string_view text_;
};

}  // namespace

BoundReader::BoundReader(std::unique_ptr<NgramReader> reader, std::shared_ptr<const void> arrays, PythonOf<ReadVocabulary> vocabulary,
                         ReaderOptions options)
    : reader_(std::move(reader)), arrays_(std::move(arrays)), vocabulary_(std::move(vocabulary)),
      words_(From<ReadVocabulary>::view(vocabulary_)), options_(std::move(options)), owner_(next_owner()) {
    require(words_.offsets.size() == reader_->words() + std::size_t{1}, "a vocabulary of another size");
}

void BoundReader::refuse(const char* reason, nb::handle about) const {
    options_.refuse(reason, about);
    throw std::runtime_error(reason);
}

void BoundReader::check(const State& state) const {
    if (state.owner() != owner_) refuse("model", nb::none());
}

// The logarithm of what is an event, at most zero.
double BoundReader::checked(double logprob, std::uint32_t word, nb::handle about) const {
    if (word == kEos && !options_.eos) return -INFINITY;
    if (logprob > 0) {
        if (logprob > kRounding) refuse("probability", about);
        return 0;
    }
    return logprob;
}

// UTF-8, which the object holds.
std::string_view BoundReader::bytes_of(nb::handle text) const {
    if (PyUnicode_Check(text.ptr())) {
        Py_ssize_t size = 0;
        const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (data == nullptr) {
            PyErr_Clear();
            refuse("surrogate", text);
        }
        return {data, static_cast<std::size_t>(size)};
    }
    if (!PyBytes_Check(text.ptr())) refuse("type", text);
    return {PyBytes_AsString(text.ptr()), static_cast<std::size_t>(PyBytes_Size(text.ptr()))};
}

std::int64_t BoundReader::find(std::string_view word) const {
    if (word.empty()) return -1;
    return find_token(words_, {reinterpret_cast<const std::uint8_t*>(word.data()), word.size()});
}

std::uint32_t BoundReader::word_id(nb::handle word) const {
    std::uint32_t id = kUnk;
    if (PyUnicode_Check(word.ptr())) {
        const std::string_view text = bytes_of(word);
        if (text == "</s>") return kEos;
        if (text.size() < 3 || text[0] != '<') return static_cast<std::uint32_t>(std::max<std::int64_t>(find(text), kUnk));
        const std::int64_t start = 0, end = static_cast<std::int64_t>(text.size()), one = 1;
        const View<std::uint8_t> data{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
        EncodeState state;
        const EncodeStatus status = encode({data, {&start, 1}, {&end, 1}, data, {&start, 1}, {&end, 1}, {&one, 1}, {&end, 1}},
                                           words_, {TokenMode::given, options_.reserved, false, false, false}, state, {&id, 1}, {}, {});
        if (status != EncodeStatus::done) refuse("reserved", word);
    } else {
        const nb::object number = nb::steal(PyNumber_Index(word.ptr()));
        if (!number.is_valid()) {
            PyErr_Clear();
            refuse("type", word);
        }
        const long long value = PyLong_AsLongLong(number.ptr());
        if (PyErr_Occurred() != nullptr) PyErr_Clear();
        if (value < 0 || value >= static_cast<long long>(reader_->words())) refuse("id", word);
        id = static_cast<std::uint32_t>(value);
    }
    if (id == kBos) refuse("bos", word);
    return id;
}

State BoundReader::begin(bool bos) const {
    State state(owner_, reader_->order());
    reader_->begin(bos, state.cells());
    return state;
}

nb::tuple BoundReader::step(const State& state, nb::handle word) const {
    check(state);
    const std::uint32_t id = word_id(word);
    // The state is made in the place where Python holds it.
    nb::object next = nb::inst_alloc(state_type());
    State* const behind = new (nb::inst_ptr<State>(next)) State(owner_, reader_->order());
    nb::inst_mark_ready(next);
    const double logprob = checked(reader_->logprob(reader_->step(state.cells(), id, behind->cells())), id, word);
    nb::object pair = nb::steal(PyTuple_New(2));
    PyTuple_SetItem(pair.ptr(), 0, PyFloat_FromDouble(logprob));
    PyTuple_SetItem(pair.ptr(), 1, next.release().ptr());
    return nb::borrow<nb::tuple>(pair);
}

void BoundReader::step_all(View<Cell> from, View<std::uint32_t> words, MutableView<Cell> to, MutableView<double> logprob) const {
    constexpr std::size_t kStepsAhead = 8;
    const std::size_t order = reader_->order(), n = words.size();
    for (std::size_t i = 0; i < n; ++i) {
        require(words[i] < reader_->words() && words[i] != kBos, "a token id outside the vocabulary");
        require(reader_->sound(&from[i * order]), "states that no step leads to");
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (i + kStepsAhead < n) reader_->prefetch_step(&from[(i + kStepsAhead) * order], words[i + kStepsAhead]);
        const double p = reader_->logprob(reader_->step(&from[i * order], words[i], &to[i * order]));
        logprob[i] = words[i] == kEos && !options_.eos ? -INFINITY : p;
    }
}

nb::object BoundReader::score_line(nb::str text) const {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) PyErr_Clear();    // the long way says what is wrong with it
    const auto length = static_cast<std::size_t>(size);
    if (data == nullptr || options_.mode < 0 || length > kShort || reader_->order() > kOrders) return nb::none();
    if (std::memchr(data, 0, length) != nullptr || std::memchr(data, '\r', length) != nullptr) return nb::none();
    std::array<std::uint32_t, kShort + 1> ids;
    const OneSegment segment({data, length});
    EncodeState encoding;
    const EncodeOptions options{static_cast<TokenMode>(options_.mode), options_.reserved, false, false, options_.eos};
    if (encode(segment.view(), words_, options, encoding, ids, {}, {}) != EncodeStatus::done) return nb::none();
    const auto n = static_cast<std::size_t>(encoding.written);
    Turn turn(reader_->order());
    reader_->begin(true, turn.before());
    nb::object logprobs = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
    for (std::size_t i = 0; i < n; ++i) {
        if (ids[i] == kBos || (ids[i] == kEos && (!options_.eos || i + 1 < n))) return nb::none();
        const double logprob = reader_->logprob(turn.step(*reader_, ids[i]));
        if (logprob > kRounding) return nb::none();
        PyTuple_SetItem(logprobs.ptr(), static_cast<Py_ssize_t>(i), PyFloat_FromDouble(std::min(logprob, 0.0)));
    }
    return logprobs;
}

namespace {

// The sum of some numbers, rounded once (Ogita, Rump & Oishi 2005, algorithm Sum2, with the errors added up in the same way).
double exact_sum(View<double> values) {
    double sum = 0, error = 0, rest = 0;
    const auto add = [](double& to, double value) {
        const double before = to;
        to += value;
        const double part = to - before;
        return (before - (to - part)) + (value - part);
    };
    for (const double value : values) {
        if (!std::isfinite(value)) return value;
        rest += add(error, add(sum, value));
    }
    return sum + (error + rest);
}

}  // namespace

nb::object BoundReader::score_lines(nb::list texts) const {
    if (options_.mode < 0 || options_.reserved == ReservedPolicy::ordinary) return nb::none();
    std::string data;
    std::vector<std::int64_t> starts, ends;
    for (const nb::handle text : texts) {
        Py_ssize_t size = 0;
        const char* const bytes = PyUnicode_Check(text.ptr()) ? PyUnicode_AsUTF8AndSize(text.ptr(), &size) : nullptr;
        if (bytes == nullptr) {
            PyErr_Clear();
            return nb::none();
        }
        starts.push_back(static_cast<std::int64_t>(data.size()));
        data.append(bytes, static_cast<std::size_t>(size));
        ends.push_back(static_cast<std::int64_t>(data.size()));
    }
    std::vector<double> logprob, sums;
    {
        nb::gil_scoped_release release;
        const EncodeOptions options{static_cast<TokenMode>(options_.mode), options_.reserved, false, true, options_.eos};
        std::vector<std::uint32_t> ids, events;
        std::vector<std::uint8_t> matched, kind;
        bool clean = data.find('\0') == std::string::npos && data.find('\r') == std::string::npos;
        for (std::size_t first = 0; clean && first < starts.size(); first += kTexts) {    // what the first caches hold
            const std::size_t n = std::min(kTexts, starts.size() - first), written = logprob.size();
            const auto most = static_cast<std::size_t>(ends[first + n - 1] - starts[first]) + 2 * n;
            if (ids.size() < most) {
                ids.resize(most);
                events.resize(most);
                matched.resize(most);
                kind.resize(most);
            }
            const SegmentText segments{{reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}, View<std::int64_t>(starts).subspan(first, n),
                                       View<std::int64_t>(ends).subspan(first, n), {}, {}, {}, {}, {}};
            EncodeState encoding;
            clean = encode(segments, words_, options, encoding, ids, {}, {}) == EncodeStatus::done;
            const auto tokens = static_cast<std::size_t>(encoding.written);
            // A vocabulary in which a word has the id of <s> would make more sentences of these than there are.
            const auto begun = static_cast<std::size_t>(std::count(ids.begin(), ids.begin() + encoding.written, kBos));
            clean = clean && begun == n;
            if (!clean) break;
            logprob.resize(written + tokens);
            const MutableView<double> rows = MutableView<double>(logprob).subspan(written);
            logprob.resize(written + reader_->score(View<std::uint32_t>(ids).first(tokens), {rows, matched, events, kind, {}}));
            for (std::size_t i = 1, begin = written, line = 0; i <= tokens; ++i) {
                if (i < tokens && ids[i] != kBos) continue;
                const std::size_t end = written + i - ++line;    // events before it: ids without <s>
                ends[first + line - 1] = static_cast<std::int64_t>(end);
                sums.push_back(exact_sum(View<double>(logprob).subspan(begin, end - begin)));
                begin = end;
            }
        }
        // Rounding, or tables that contradict themselves: the long way says which.
        if (!clean || std::any_of(logprob.begin(), logprob.end(), [](double value) { return value > 0; })) sums.clear();
    }
    if (sums.size() != nb::len(texts)) return nb::none();
    return nb::make_tuple(to_python(std::move(logprob)), to_python(std::move(ends)), to_python(std::move(sums)));
}

// ---- KenLM's calls

void BoundReader::begin_written(bool bos, WrittenState& state) const {
    state.become(owner_, reader_->order());
    reader_->begin(bos, state.cells());
}

Step BoundReader::step_written(const WrittenState& from, nb::handle word, WrittenState& to, bool& oov) const {
    const WrittenState* before = &from;
    WrittenState copy;
    if (from.owner() == 0) {    // never written: nothing before
        begin_written(false, copy);
        before = &copy;
    } else {
        check(from);
        if (&from == &to) {
            copy = from;
            before = &copy;
        }
    }
    const auto id = static_cast<std::uint32_t>(std::max<std::int64_t>(find(bytes_of(word)), kUnk));
    to.become(owner_, reader_->order());
    oov = id == kUnk;
    return reader_->step(before->cells(), id, to.cells());
}

// Calls visit(step, id) for each word between white space, and at last for </s>.
template <class F>
void BoundReader::walk_words(nb::handle sentence, bool bos, bool eos, F&& visit) const {
    const std::string_view text = bytes_of(sentence);
    const OneSegment segment(text);
    std::array<std::uint32_t, kShort / 2 + 2> few;
    std::vector<std::uint32_t> more(text.size() > kShort ? text.size() / 2 + 2 : 0);
    const MutableView<std::uint32_t> ids = more.empty() ? MutableView<std::uint32_t>(few) : MutableView<std::uint32_t>(more);
    EncodeState encoding;
    encode(segment.view(), words_, {TokenMode::whitespace, ReservedPolicy::ordinary, false, false, eos}, encoding, ids, {}, {});
    Turn turn(reader_->order());
    reader_->begin(bos, turn.before());
    for (std::size_t i = 0; i < static_cast<std::size_t>(encoding.written); ++i) visit(turn.step(*reader_, ids[i]), ids[i]);
}

float BoundReader::score_words(nb::handle sentence, bool bos, bool eos) const {
    // A logarithm costs as much as a lookup: probabilities are multiplied as long as the product is far from the smallest number.
    const bool linear = reader_->linear();
    float sum = 0;
    double total = 0, product = 1;
    walk_words(sentence, bos, eos, [&](const Step& step, std::uint32_t) {
        if (!linear) {
            sum += as_log10(step.value);    // as KenLM adds them
            return;
        }
        if (product < 1e-150) {
            total += std::log(product);
            product = 1;
        }
        product *= step.value;
    });
    return linear ? as_log10(total + std::log(product)) : sum;
}

nb::list BoundReader::full_scores(nb::handle sentence, bool bos, bool eos) const {
    nb::list scores;
    walk_words(sentence, bos, eos, [&](const Step& step, std::uint32_t id) {
        scores.append(nb::make_tuple(as_log10(reader_->logprob(step)), static_cast<int>(step.matched), id == kUnk));
    });
    return scores;
}

namespace {

using Cells = Matrix<const std::uint64_t>;    // [states, order]

const Cell* cells_of(const Cells& c) { return reinterpret_cast<const Cell*>(c.data()); }

bool is_true(nb::handle value) {
    const int truth = PyObject_IsTrue(value.ptr());
    if (truth < 0) throw nb::python_error();
    return truth == 1;
}

struct KenlmCalls {
    nb::object owner;    // the reader lives in it
    const BoundReader& reader;
    explicit KenlmCalls(nb::object object) : owner(std::move(object)), reader(nb::cast<const BoundReader&>(owner)) {}
};

void bind_states(nb::module_& m) {
    nb::class_<State>(m, "State")
        .def("__eq__", [](const State& a, nb::handle b) { return nb::isinstance<State>(b) && a == nb::cast<const State&>(b); })
        .def("__hash__", [](const State& a) { return static_cast<Py_hash_t>(a.hash() >> 1); })
        .def("__copy__", [](nb::handle a) { return nb::borrow(a); })
        .def("__deepcopy__", [](nb::handle a, nb::handle) { return nb::borrow(a); })
        .def("__len__", &State::length)
        .def("__repr__", [](const State& a) {
            return "<NgramState: " + std::to_string(a.length()) + (a.length() == 1 ? " word" : " words") + " of context, order " +
                   std::to_string(a.order()) + ">";
        })
        .def_prop_ro("owner", &State::owner)
        .def_prop_ro("order", &State::order);
    nb::class_<WrittenState>(m, "WrittenState")
        .def(nb::init<>())
        .def("__eq__", [](const WrittenState& a, const WrittenState& b) { return a == b; }, nb::is_operator())
        .def("__lt__", [](const WrittenState& a, const WrittenState& b) { return a.compare(b) < 0; }, nb::is_operator())
        .def("__le__", [](const WrittenState& a, const WrittenState& b) { return a.compare(b) <= 0; }, nb::is_operator())
        .def("__gt__", [](const WrittenState& a, const WrittenState& b) { return a.compare(b) > 0; }, nb::is_operator())
        .def("__ge__", [](const WrittenState& a, const WrittenState& b) { return a.compare(b) >= 0; }, nb::is_operator())
        .def("__hash__", [](const WrittenState& a) { return static_cast<Py_hash_t>(a.hash() >> 1); })
        .def("__copy__", [](const WrittenState& a) { return a; })
        .def("__deepcopy__", [](const WrittenState& a, nb::handle) { return a; }, nb::arg("memo") = nb::none())
        .def("__len__", &WrittenState::length);
}

}  // namespace

void bind_reader(nb::module_& m) {
    bind_states(m);
    nb::class_<BoundReader>(m, "Reader")
        .def_prop_ro("owner", &BoundReader::owner)
        .def_prop_ro("order", [](const BoundReader& r) { return r.reader().order(); })
        .def("begin", &BoundReader::begin)
        .def("step", &BoundReader::step)
        .def("word_ids", [](const BoundReader& r, nb::sequence words) {
            std::vector<std::uint32_t> ids;
            for (const nb::handle word : words) ids.push_back(r.word_id(word));
            return to_python(std::move(ids));
        })
        .def("pack", [](const BoundReader& r, nb::sequence states) {
            std::vector<std::uint64_t> cells;
            for (const nb::handle one : states) {
                const State& state = nb::cast<const State&>(one);
                require(state.owner() == r.owner(), "states of another model");
                const auto* const first = reinterpret_cast<const std::uint64_t*>(state.cells());
                cells.insert(cells.end(), first, first + state.order());
            }
            return to_python(std::move(cells));
        })
        .def("unpack", bound(+[](const BoundReader& r, const Cells& cells, std::size_t i) {
            require(cells.shape(1) == r.reader().order() && i < cells.shape(0), "cells");
            const Cell* const one = cells_of(cells) + i * cells.shape(1);
            require(r.reader().sound(one), "states that no step leads to");
            State state(r.owner(), cells.shape(1));
            std::copy_n(one, cells.shape(1), state.cells());
            return state;
        }))
        .def("step_batch", bound(+[](const BoundReader& r, const Cells& from, Ids words, const Matrix<std::uint64_t>& to,
                                     MutableView<double> logprob) {
            const std::size_t n = words.size(), order = r.reader().order();
            require(from.shape(0) == n && to.shape(0) == n && logprob.size() == n && from.shape(1) == order && to.shape(1) == order, "shapes");
            r.step_all({cells_of(from), n * order}, words, {reinterpret_cast<Cell*>(to.data()), n * order}, logprob);
        }))
        .def("score_lines", &BoundReader::score_lines)
        .def("score_line", &BoundReader::score_line);
    // KenLM's calls on a reader: `lmgauge.compat.kenlm` derives from it, so that a call does not cost a second one.
    nb::class_<KenlmCalls>(m, "KenlmCalls")
        .def(nb::init<nb::object>())
        .def_prop_ro("order", [](const KenlmCalls& c) { return c.reader.reader().order(); })
        .def("__contains__", [](const KenlmCalls& c, nb::handle word) { return c.reader.has_word(word); })
        .def("BeginSentenceWrite", [](const KenlmCalls& c, WrittenState& state) { c.reader.begin_written(true, state); }, nb::arg("state"))
        .def("NullContextWrite", [](const KenlmCalls& c, WrittenState& state) { c.reader.begin_written(false, state); }, nb::arg("state"))
        .def("score", [](const KenlmCalls& c, nb::handle sentence, nb::handle bos, nb::handle eos) {
            return c.reader.score_words(sentence, is_true(bos), is_true(eos));
        }, nb::arg("sentence"), nb::arg("bos") = true, nb::arg("eos") = true)
        .def("BaseScore", [](const KenlmCalls& c, const WrittenState& from, nb::handle word, WrittenState& to) {
            bool oov = false;
            return as_log10(c.reader.reader().logprob(c.reader.step_written(from, word, to, oov)));
        }, nb::arg("in_state"), nb::arg("word"), nb::arg("out_state"))
        .def("_full_scores", [](const KenlmCalls& c, nb::handle sentence, bool bos, bool eos) { return c.reader.full_scores(sentence, bos, eos); })
        .def("_full_step", [](const KenlmCalls& c, const WrittenState& from, nb::handle word, WrittenState& to) {
            bool oov = false;
            const Step step = c.reader.step_written(from, word, to, oov);
            return std::make_tuple(as_log10(c.reader.reader().logprob(step)), static_cast<int>(step.matched), oov);
        });
    using Options = std::tuple<int, int, bool, nb::object>;
    const auto options_of = [](const Options& o) {
        // What was cut elsewhere (`given`) comes as words, one by one.
        require(std::get<0>(o) >= -1 && std::get<0>(o) < static_cast<int>(TokenMode::given), "how text is cut");
        return ReaderOptions{std::get<0>(o), From<ReservedPolicy>::view(std::get<1>(o)), std::get<2>(o), std::get<3>(o)};
    };
    m.def("read_tables", [=](const PythonOf<ModelView>& model, const PythonOf<ReadVocabulary>& vocabulary, const Options& options) {
        check_apart(model, vocabulary);
        auto kept = std::make_shared<const PythonOf<ModelView>>(model);
        return BoundReader(read_tables(From<ModelView>::view(model)), std::move(kept), vocabulary, options_of(options));
    });
    m.def("read_kenlm", [=](const Array<std::uint8_t>& data, const PythonOf<ReadVocabulary>& vocabulary, const Options& options) {
        check_apart(data, vocabulary);
        auto kept = std::make_shared<const Array<std::uint8_t>>(data);
        return BoundReader(read_kenlm(open_kenlm({data.data(), data.size()})), std::move(kept), vocabulary, options_of(options));
    });
}

}  // namespace lmgauge
