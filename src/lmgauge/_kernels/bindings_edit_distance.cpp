#include "bindings.hpp"
#include "edit_distance.hpp"

namespace {

EditUnit as_unit(int unit) {
    require(unit == 0 || unit == 1, "unit: 0 (words) or 1 (characters)");
    return static_cast<EditUnit>(unit);
}

// Lets a long computation end: where Ctrl-C was pressed (the main thread hears of it), or where `stop` was set (the others).
std::function<void()> pause_for(const MutableArray<std::uint8_t>& stop) {
    require(stop.size() == 1, "stop: one flag");
    return [flag = static_cast<volatile const std::uint8_t*>(stop.data())] {
        if (*flag != 0) throw std::runtime_error("stopped");
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
}

}  // namespace

void bind_edit_distance(nb::module_& m) {
    def(m, "edit_counts", [](const TextsArrays& references, Array<std::int64_t> offsets, const TextsArrays& hypotheses,
                            int unit, std::size_t begin, std::size_t end, MutableArray<std::int64_t> out,
                            MutableArray<std::uint8_t> stop) {
        const ReferencesView all = view(references, offsets);
        const TextsView texts = view(hypotheses);
        require(offsets.size() == texts.size() + 1, "references for each hypothesis");
        check_range(begin, end, texts.size());
        require(out.size() == 4 * texts.size(), "four counts for each segment");
        const auto pause = pause_for(stop);
        nb::gil_scoped_release release;
        edit_counts(all, texts, as_unit(unit), begin, end, view(out), pause);
    });
    def(m, "edit_operations", [](const TextsArrays& references, const TextsArrays& hypotheses, int unit, std::size_t begin,
                                std::size_t end, MutableArray<std::uint8_t> stop) {
        const TextsView one = view(references), other = view(hypotheses);
        require(one.size() == other.size(), "a reference for each hypothesis");
        check_range(begin, end, one.size());
        const auto pause = pause_for(stop);
        EditOperations result;
        {
            nb::gil_scoped_release release;
            result = edit_operations(one, other, as_unit(unit), begin, end, pause);
        }
        return nb::make_tuple(to_numpy(std::move(result.operations)), to_numpy(std::move(result.ends)));
    });
}
