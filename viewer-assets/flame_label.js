// Numbers and names as text. Keep it ASCII.
const flameLabel = (() => {
    "use strict";

    const ELLIPSIS = "\u2026";

    // Made once: toLocaleString makes one each time, which is most of the time a picture takes.
    const FORMATS = [0, 1, 2].map((digits) => new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

    const threeDigits = (value) => FORMATS[value >= 100 ? 0 : value >= 10 ? 1 : 2].format(value);

    // "63.2 s", "4.05 ms", "12 us"
    function time(us) {
        if (us >= 1e6) return threeDigits(us / 1e6) + " s";
        if (us >= 1e3) return threeDigits(us / 1e3) + " ms";
        return Math.round(us) + " \u00b5s";
    }

    // "62.1 %", "0.04 %", "< 0.01 %"
    function share(part, whole) {
        if (!(part > 0) || !(whole > 0)) return "0 %";
        const percent = 100 * part / whole;
        if (percent < 0.01) return "< 0.01 %";
        return percent.toFixed(percent >= 1 ? 1 : 2) + " %";
    }

    // Threads that were there on average: "7.93"
    function threads(us, durationUs) {
        return durationUs > 0 ? (us / durationUs).toFixed(2) : "?";
    }

    // A C++ or Rust name without what stands in angle brackets and parentheses: "std::vector<int>::push_back(int)" ->
    // "std::vector<...>::push_back(...)", with one character for the dots.
    function withoutArguments(name) {
        let short = "";
        let depth = 0;
        for (const c of name) {
            if (c === "<" || c === "(") {
                if (depth === 0) short += c + ELLIPSIS;
                depth++;
            } else if ((c === ">" || c === ")") && depth > 0) {
                depth--;
                if (depth === 0) short += c;
            } else if (depth === 0) short += c;
        }
        return depth === 0 ? short : name;
    }

    // The name within so many columns, what tells it from its neighbours kept as long as possible; "" where nothing useful fits.
    function fit(name, columns) {
        if (columns < 3) return "";
        if (name.length <= columns) return name;
        const wait = /^\[wait: (.*)\]$/.exec(name);
        if (wait !== null) return fit(wait[1], columns);
        if (/::/.test(name)) {
            const short = withoutArguments(name);
            if (short.length <= columns) return short;
            const last = short.slice(short.lastIndexOf("::") + 2);
            return last.length + 3 <= columns ? `${ELLIPSIS}::${last}` : cut(last, columns);
        }
        return cut(name, columns);
    }

    // By characters, so that no surrogate pair is torn.
    function cut(text, columns) {
        const characters = [...text];
        return characters.length <= columns ? text : characters.slice(0, columns - 1).join("") + ELLIPSIS;
    }

    return { time, share, threads, fit };
})();
