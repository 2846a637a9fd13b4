// The one door between Python and the kernels. `def` binds a function over views of arrays: what Python gives for each of its
// parameters is `From<parameter>::Python`, and `From<parameter>::view` checks it and makes the parameter of it. Then the
// function runs without the GIL, and `to_python` gives back what it returns.
//
// What holds for every function, whatever it does: arrays lie at addresses that their numbers can have, and what a call writes
// is nothing that it reads. Without the second, an index could change between the check of it and its use.
#pragma once

#include <Python.h>

#include <cstdio>  // nanobind writes to stderr, and its own headers do not all bring this one

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashing.hpp"

namespace lmgauge {

namespace nb = nanobind;

// ---- in: what Python gives for a parameter ------------------------------------------------------------------------------

template <class Number, class Shape>
using ArrayOf = nb::ndarray<Number, Shape, nb::c_contig, nb::device::cpu>;
template <class Number>
using Array = ArrayOf<const Number, nb::ndim<1>>;
template <class Number>
using MutableArray = ArrayOf<Number, nb::ndim<1>>;
template <class Number>
using Matrix = ArrayOf<Number, nb::ndim<2>>;

// Most parameters are taken as they are.
template <class Parameter>
struct From {
    using Python = Parameter;
    template <class Value>
    static Value& view(Value& value) { return value; }
};
template <class Parameter>
using PythonOf = typename From<Parameter>::Python;
// How a function gets it: an object that cannot be copied is the one that Python holds.
template <class Parameter, class Given = PythonOf<std::remove_cvref_t<Parameter>>>
using GivenFor = std::conditional_t<std::is_copy_constructible_v<Given>, const Given&, Given&>;

template <class Kind>
    requires std::is_enum_v<Kind>
struct From<Kind> {    // `last_of` is overloaded for each kind
    using Python = int;
    static Kind view(int number) {
        require(0 <= number && number <= static_cast<int>(last_of(Kind{})), "a number that stands for no kind");
        return static_cast<Kind>(number);
    }
};

template <class Number>
struct From<std::span<Number>> {
    static_assert(std::is_arithmetic_v<Number>);
    using Python = ArrayOf<Number, nb::ndim<1>>;
    static std::span<Number> view(const Python& array) { return {array.data(), array.size()}; }
};

// What must hold of a parameter made of several values: overloads of `check` say it.
template <class Parameter>
void check(const Parameter&) {}

// Structs are rows of so many numbers, or single ones.
template <class Row, class Number, int kColumns>
struct FromRows {
    using Python = ArrayOf<Number, std::conditional_t<kColumns == 1, nb::ndim<1>, nb::shape<-1, kColumns>>>;
    static_assert(sizeof(Row) == sizeof(Number) * kColumns);
    static std::span<Row> view(const Python& array) {
        require(reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Row) == 0, "rows at an address that they cannot have");
        const std::span<Row> rows{reinterpret_cast<Row*>(array.data()), array.shape(0)};
        check(rows);
        return rows;
    }
};

// A struct of arrays and numbers is a tuple of them.
template <class Struct, class... Fields>
struct FromFields {
    using Python = std::tuple<PythonOf<Fields>...>;
    static Struct view(const Python& fields) {
        const auto made = [](const PythonOf<Fields>&... field) { return Struct{From<Fields>::view(field)...}; };
        const Struct all = std::apply(made, fields);
        check(all);
        return all;
    }
};

template <class... Fields>
struct From<std::tuple<Fields...>> : FromFields<std::tuple<Fields...>, Fields...> {};

template <class Item>
struct From<std::vector<Item>> {
    using Python = std::vector<PythonOf<Item>>;
    static std::vector<Item> view(const Python& given) {
        std::vector<Item> items;
        for (const auto& item : given) items.push_back(From<Item>::view(item));
        return items;
    }
};

// Where the arrays of a call lie.
class Extents {
  public:
    template <class Value>
    void add(const Value&) {}
    template <class Number, class... Options>
    void add(const nb::ndarray<Number, Options...>& array) {
        const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
        require(begin % alignof(Number) == 0, "an array at an address that is not a multiple of its numbers' size");
        if (array.nbytes() > 0) all_.push_back({begin, begin + array.nbytes(), !std::is_const_v<Number>});
    }
    template <class... Value>
    void add(const std::tuple<Value...>& values) {
        std::apply([this](const Value&... value) { (add(value), ...); }, values);
    }
    template <class Value>
    void add(const std::vector<Value>& values) {
        for (const Value& value : values) add(value);
    }
    void check_apart() const {
        for (const Extent& one : all_) {
            for (const Extent& other : all_) {
                const bool apart = one.end <= other.begin || other.end <= one.begin;
                require(!one.written || &one == &other || apart, "an output that is an input as well");
            }
        }
    }

  private:
    struct Extent {
        std::uintptr_t begin, end;
        bool written;
    };
    std::vector<Extent> all_;
};

template <class... Given>
void check_apart(const Given&... given) {
    Extents extents;
    (extents.add(given), ...);
    extents.check_apart();
}

// ---- out: what a kernel returns -----------------------------------------------------------------------------------------

template <class Value>
Value to_python(Value&& value) { return std::move(value); }
template <class Number>
    requires std::is_arithmetic_v<Number>
nb::object to_python(std::vector<Number>&& values) {
    auto* const kept = new std::vector<Number>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, Number, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}
template <class Part>
    requires(!std::is_arithmetic_v<Part>)
nb::list to_python(std::vector<Part>&& parts) {
    nb::list all;
    for (Part& part : parts) all.append(to_python(std::move(part)));
    return all;
}
template <class... Part>
nb::tuple to_python(std::tuple<Part...>&& parts) {
    return std::apply([](Part&... part) { return nb::make_tuple(to_python(std::move(part))...); }, parts);
}
inline nb::bytes to_python(std::string&& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// A struct is the tuple of its `fields`.
template <class Struct>
    requires requires(Struct& all) { fields(all); }
nb::tuple to_python(Struct&& all) {
    return std::apply([](auto&... field) { return nb::make_tuple(to_python(std::move(field))...); }, fields(all));
}

// ---- functions ----------------------------------------------------------------------------------------------------------

struct NoChecks {
    void operator()(const auto&...) const {}
};

// A function over views as one that Python calls. `checks` is called with the same views before, and refuses what they must not
// be together.
template <class Result, class... Parameters, class Check = NoChecks>
auto bound(Result (*kernel)(Parameters...), Check checks = {}) {
    return [kernel, checks](GivenFor<Parameters>... given) {
        check_apart(given...);
        const auto call = [&]() -> Result {
            nb::gil_scoped_release release;
            std::tuple<decltype(From<std::remove_cvref_t<Parameters>>::view(given))...> views{
                From<std::remove_cvref_t<Parameters>>::view(given)...};
            std::apply(checks, views);
            return std::apply(kernel, views);
        };
        if constexpr (std::is_void_v<Result>) call();
        else return to_python(call());
    };
}
template <class Function, class Check = NoChecks>
void def(nb::module_& m, const char* name, Function function, Check checks = {}) {
    m.def(name, bound(+function, checks));
}

}  // namespace lmgauge
