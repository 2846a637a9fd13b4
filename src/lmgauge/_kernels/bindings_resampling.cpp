#include "bindings.hpp"

void bind_resampling(nb::module_& m) {
    using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    m.def("bootstrap_sums", [](Matrix values, std::uint64_t seed, std::uint64_t first, MutableMatrix sums) {
        const std::size_t width = values.shape(1);
        require(width > 0 && width <= kMaxColumns && sums.shape(1) == width, "columns");
        nb::gil_scoped_release release;
        bootstrap_sums({values.data(), values.size()}, width, seed, first, {sums.data(), sums.size()});
    });
    m.def("sign_flip_sums", [](Array<double> values, std::uint64_t seed, std::uint64_t first, MutableArray<double> sums) {
        nb::gil_scoped_release release;
        sign_flip_sums(view(values), seed, first, view(sums));
    });
}
