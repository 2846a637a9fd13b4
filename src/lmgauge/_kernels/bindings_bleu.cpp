#include "bindings.hpp"
#include "bleu.hpp"

namespace {

nb::object to_numpy(Bytes&& bytes) {
    const std::size_t size = bytes.size();
    std::uint8_t* const kept = bytes.release();
    nb::capsule owner(kept, [](void* p) noexcept { std::free(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(kept, {size}, owner));
}

}  // namespace

void bind_bleu(nb::module_& m) {
    def(m, "separate_tokens", [](const TextsArrays& texts, int kind, Array<std::uint8_t> classes, std::size_t begin,
                                std::size_t end) {
        const auto tokens = static_cast<MetricTokens>(kind);
        require(kind >= 0 && kind <= static_cast<int>(MetricTokens::international), "kind of tokens");
        require(tokens != MetricTokens::international || classes.size() == 0x110000, "a class for each code point");
        check_range(begin, end, std::get<1>(texts).size());
        TokenTexts separated;
        {
            nb::gil_scoped_release release;
            separated = separate_tokens(view(texts), tokens, view(classes), begin, end);
        }
        return nb::make_tuple(to_numpy(std::move(separated.data)), to_numpy(std::move(separated.starts)),
                              to_numpy(std::move(separated.ends)));
    });
    def(m, "bleu_statistics", [](const TextsArrays& hypotheses, const TextsArrays& references, Array<std::int64_t> offsets,
                                std::size_t order, int length, std::size_t begin, std::size_t end,
                                MutableArray<std::int64_t> out) {
        require(order >= 1 && order <= 64, "order: 1 to 64");
        require(length >= 0 && length <= static_cast<int>(ReferenceLength::average), "kind of reference length");
        const std::size_t segments = std::get<1>(hypotheses).size();
        require(offsets.size() == segments + 1 && out.size() == segments * (2 + 2 * order), "shapes");
        check_range(begin, end, segments);
        nb::gil_scoped_release release;
        const auto kind = static_cast<ReferenceLength>(length);
        bleu_statistics(view(hypotheses), view(references, offsets), order, kind, begin, end, view(out));
    });
}
