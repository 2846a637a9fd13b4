// What holds for the arguments of every kernel, whatever it does: arrays lie at addresses that their numbers can have, and
// what a call writes is nothing that it reads. `def` binds a function that is called only where both are so; without the
// second, an index could change between the check of it and its use.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace lmgauge {

class Extents {
  public:
    template <class T>
    void add(const T&) {}
    template <class T, class... Options>
    void add(const nanobind::ndarray<T, Options...>& array) {
        const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
        require(begin % alignof(T) == 0, "an array at an address that is not a multiple of its numbers' size");
        const Extent extent{begin, begin + array.nbytes()};
        if (extent.begin == extent.end) return;
        all_.push_back(extent);
        if (!std::is_const_v<T>) written_.push_back(all_.size() - 1);
    }
    template <class... T>
    void add(const std::tuple<T...>& arrays) {
        std::apply([this](const T&... array) { (add(array), ...); }, arrays);
    }
    template <class T>
    void add(const std::vector<T>& arrays) {
        for (const T& array : arrays) add(array);
    }
    void check_apart() const {
        for (const std::size_t i : written_) {
            for (std::size_t j = 0; j < all_.size(); ++j) {
                require(i == j || all_[i].end <= all_[j].begin || all_[j].end <= all_[i].begin, "an output that is an input as well");
            }
        }
    }

  private:
    struct Extent {
        std::uintptr_t begin, end;
    };
    std::vector<Extent> all_;
    std::vector<std::size_t> written_;
};

template <class... A>
void check_arguments(const A&... arguments) {
    Extents extents;
    (extents.add(arguments), ...);
    extents.check_apart();
}

template <class F, class Object, class R, class... A>
auto checked(F function, R (Object::*)(A...) const) {
    return [function](A... arguments) -> R {
        check_arguments(arguments...);
        return function(std::forward<A>(arguments)...);
    };
}
template <class F>
auto checked(F function) {
    return checked(function, &F::operator());
}

template <class F>
void def(nanobind::module_& m, const char* name, F function) {
    m.def(name, checked(function));
}

}  // namespace lmgauge
