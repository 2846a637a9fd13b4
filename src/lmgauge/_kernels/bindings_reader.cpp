// Python's face of the readers: states, steps, and short texts in one call. A step costs less than letting go of the GIL and
// taking it again, so only what may take long does that.
#include "bindings.hpp"
#include "text_reader.hpp"

#include <atomic>
#include <memory>

namespace lmgauge {

inline auto fields(ScoredLines& all) { return std::tie(all.logprob, all.ends, all.sums); }

namespace {

std::uint64_t next_owner() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

nb::handle state_type() {
    static const nb::handle type = nb::type<State>();
    return type;
}

// A reader of n-gram models as Python holds it: the tables, the vocabulary that words go through, how text is cut, and what to
// call with a reason and a word when a call must be refused: it raises.
class BoundReader {
  public:
    // `arrays`: what the reader looks into; it lives as long as this.
    BoundReader(std::unique_ptr<NgramReader> reader, std::shared_ptr<const void> arrays, PythonOf<ReadVocabulary> vocabulary,
                const TextOptions& options, nb::object refuse)
        : arrays_(std::move(arrays)), reader_(std::move(reader)), vocabulary_(std::move(vocabulary)), refuse_(std::move(refuse)), eos_(options.eos),
          by_lines_(options.mode >= 0 && options.reserved != ReservedPolicy::ordinary),
          texts_(*reader_, From<ReadVocabulary>::view(vocabulary_), options), owner_(next_owner()) {
        require(From<ReadVocabulary>::view(vocabulary_).offsets.size() == reader_->words() + std::size_t{1}, "a vocabulary of another size");
    }

    const NgramReader& reader() const { return *reader_; }
    const TextReader& texts() const { return texts_; }
    std::uint64_t owner() const { return owner_; }
    std::size_t order() const { return reader_->order(); }

    // UTF-8, which the object holds.
    std::string_view bytes_of(nb::handle text) const {
        if (PyUnicode_Check(text.ptr())) {
            if (const auto bytes = utf8(text)) return *bytes;
            refuse("surrogate", text);
        }
        if (!PyBytes_Check(text.ptr())) refuse("type", text);
        return {PyBytes_AsString(text.ptr()), static_cast<std::size_t>(PyBytes_Size(text.ptr()))};
    }

    std::uint32_t word_id(nb::handle word) const {
        std::uint32_t id = kUnk;
        if (PyUnicode_Check(word.ptr())) {
            const std::string_view text = bytes_of(word);
            if (text == "</s>") return kEos;
            if (text.size() < 3 || text[0] != '<') return static_cast<std::uint32_t>(std::max<std::int64_t>(texts_.find(text), kUnk));
            const auto reserved = texts_.find_reserved(text);
            if (!reserved) refuse("reserved", word);
            id = *reserved;
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

    State begin(bool bos) const {
        State state(owner_, order());
        reader_->begin(bos, state.cells());
        return state;
    }

    nb::tuple step(const State& state, nb::handle word) const {
        check(state);
        const std::uint32_t id = word_id(word);
        // The state is made in the place where Python holds it.
        nb::object next = nb::inst_alloc(state_type());
        State* const behind = new (nb::inst_ptr<State>(next)) State(owner_, order());
        nb::inst_mark_ready(next);
        const double logprob = checked(reader_->logprob(reader_->step(state.cells(), id, behind->cells())), id, word);
        nb::object pair = nb::steal(PyTuple_New(2));
        PyTuple_SetItem(pair.ptr(), 0, PyFloat_FromDouble(logprob));
        PyTuple_SetItem(pair.ptr(), 1, next.release().ptr());
        return nb::borrow<nb::tuple>(pair);
    }

    // A tuple; None where the text has to go the long way, which says what is wrong with it.
    nb::object score_line(nb::str text) const {
        std::array<double, TextReader::kShort + 1> logprobs;
        const auto bytes = utf8(text);
        const auto n = bytes ? texts_.score_line(*bytes, logprobs) : std::nullopt;
        if (!n) return nb::none();
        nb::object events = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(*n)));
        for (std::size_t i = 0; i < *n; ++i) PyTuple_SetItem(events.ptr(), static_cast<Py_ssize_t>(i), PyFloat_FromDouble(logprobs[i]));
        return events;
    }

    nb::object score_lines(nb::list texts) const {
        if (!by_lines_) return nb::none();
        std::string data;
        std::vector<std::int64_t> starts, ends;
        for (const nb::handle text : texts) {
            const auto bytes = PyUnicode_Check(text.ptr()) ? utf8(text) : std::nullopt;
            if (!bytes) return nb::none();
            starts.push_back(static_cast<std::int64_t>(data.size()));
            data.append(*bytes);
            ends.push_back(static_cast<std::int64_t>(data.size()));
        }
        ScoredLines scored;
        {
            nb::gil_scoped_release release;
            scored = texts_.score_lines(data, starts, std::move(ends));
        }
        if (scored.sums.size() != starts.size()) return nb::none();
        return to_python(std::move(scored));
    }

    // KenLM's: `from` may be a state never written, after nothing, or `to` itself.
    Step step_written(const WrittenState& from, nb::handle word, WrittenState& to, bool& oov) const {
        WrittenState copy;
        if (from.owner() == 0) begin_written(false, copy);
        else check(from);
        if (&from == &to) copy = from.owner() == 0 ? copy : from;
        const Cell* const before = copy.owner() == 0 ? from.cells() : copy.cells();
        const auto id = static_cast<std::uint32_t>(std::max<std::int64_t>(texts_.find(bytes_of(word)), kUnk));
        to.become(owner_, order());
        oov = id == kUnk;
        return reader_->step(before, id, to.cells());
    }
    void begin_written(bool bos, WrittenState& state) const {
        state.become(owner_, order());
        reader_->begin(bos, state.cells());
    }

  private:
    static std::optional<std::string_view> utf8(nb::handle text) {
        Py_ssize_t size = 0;
        const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (data != nullptr) return std::string_view(data, static_cast<std::size_t>(size));
        PyErr_Clear();
        return std::nullopt;
    }
    [[noreturn]] void refuse(const char* reason, nb::handle about) const {
        refuse_(reason, about);
        throw std::runtime_error(reason);
    }
    void check(const State& state) const {
        if (state.owner() != owner_) refuse("model", nb::none());
    }
    // The logarithm of what is an event, at most zero.
    double checked(double logprob, std::uint32_t word, nb::handle about) const {
        if (word == kEos && !eos_) return -INFINITY;
        if (logprob > TextReader::kRounding) refuse("probability", about);
        return std::min(logprob, 0.0);
    }

    std::shared_ptr<const void> arrays_;
    std::unique_ptr<NgramReader> reader_;
    PythonOf<ReadVocabulary> vocabulary_;
    nb::object refuse_;
    bool eos_, by_lines_;
    TextReader texts_;
    std::uint64_t owner_;
};

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
        .def_prop_ro("order", [](const BoundReader& r) { return r.order(); })
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
            require(cells.shape(1) == r.order() && i < cells.shape(0), "cells");
            const Cell* const one = cells_of(cells) + i * cells.shape(1);
            require(r.reader().sound(one), "states that no step leads to");
            State state(r.owner(), cells.shape(1));
            std::copy_n(one, cells.shape(1), state.cells());
            return state;
        }))
        .def("step_batch", bound(+[](const BoundReader& r, const Cells& from, Ids words, const Matrix<std::uint64_t>& to,
                                     MutableView<double> logprob) {
            const std::size_t n = words.size(), order = r.order();
            require(from.shape(0) == n && to.shape(0) == n && logprob.size() == n && from.shape(1) == order && to.shape(1) == order, "shapes");
            r.texts().step_all({cells_of(from), n * order}, words, {reinterpret_cast<Cell*>(to.data()), n * order}, logprob);
        }))
        .def("score_lines", &BoundReader::score_lines)
        .def("score_line", &BoundReader::score_line);
    // KenLM's calls on a reader: `lmgauge.integrations.kenlm` derives from it, so that a call does not cost a second one.
    nb::class_<KenlmCalls>(m, "KenlmCalls")
        .def(nb::init<nb::object>())
        .def_prop_ro("order", [](const KenlmCalls& c) { return c.reader.order(); })
        .def("__contains__", [](const KenlmCalls& c, nb::handle word) { return c.reader.texts().find(c.reader.bytes_of(word)) >= 0; })
        .def("BeginSentenceWrite", [](const KenlmCalls& c, WrittenState& state) { c.reader.begin_written(true, state); }, nb::arg("state"))
        .def("NullContextWrite", [](const KenlmCalls& c, WrittenState& state) { c.reader.begin_written(false, state); }, nb::arg("state"))
        .def("score", [](const KenlmCalls& c, nb::handle sentence, nb::handle bos, nb::handle eos) {
            return c.reader.texts().score_words(c.reader.bytes_of(sentence), is_true(bos), is_true(eos));
        }, nb::arg("sentence"), nb::arg("bos") = true, nb::arg("eos") = true)
        .def("BaseScore", [](const KenlmCalls& c, const WrittenState& from, nb::handle word, WrittenState& to) {
            bool oov = false;
            return as_log10(c.reader.reader().logprob(c.reader.step_written(from, word, to, oov)));
        }, nb::arg("in_state"), nb::arg("word"), nb::arg("out_state"))
        .def("_full_scores", [](const KenlmCalls& c, nb::handle sentence, bool bos, bool eos) {
            nb::list scores;
            for (const auto& one : c.reader.texts().full_scores(c.reader.bytes_of(sentence), bos, eos)) scores.append(nb::cast(one));
            return scores;
        })
        .def("_full_step", [](const KenlmCalls& c, const WrittenState& from, nb::handle word, WrittenState& to) {
            bool oov = false;
            const Step step = c.reader.step_written(from, word, to, oov);
            return std::make_tuple(as_log10(c.reader.reader().logprob(step)), static_cast<int>(step.matched), oov);
        });
    using Options = std::tuple<int, int, bool, nb::object>;
    const auto made = [](std::unique_ptr<NgramReader> reader, std::shared_ptr<const void> arrays, const PythonOf<ReadVocabulary>& vocabulary,
                         const Options& options) {
        const auto& [mode, reserved, eos, refuse] = options;
        // What was cut elsewhere (`given`) comes as words, one by one.
        require(mode >= -1 && mode < static_cast<int>(TokenMode::given), "how text is cut");
        return BoundReader(std::move(reader), std::move(arrays), vocabulary, {mode, From<ReservedPolicy>::view(reserved), eos}, refuse);
    };
    m.def("read_tables", [=](const PythonOf<ModelView>& model, const PythonOf<ReadVocabulary>& vocabulary, const Options& options) {
        check_apart(model, vocabulary);
        auto kept = std::make_shared<const PythonOf<ModelView>>(model);
        return made(read_tables(From<ModelView>::view(model)), std::move(kept), vocabulary, options);
    });
    m.def("read_kenlm", [=](const Array<std::uint8_t>& data, const PythonOf<ReadVocabulary>& vocabulary, const Options& options) {
        check_apart(data, vocabulary);
        auto kept = std::make_shared<const Array<std::uint8_t>>(data);
        return made(read_kenlm(open_kenlm({data.data(), data.size()})), std::move(kept), vocabulary, options);
    });
}

}  // namespace lmgauge
