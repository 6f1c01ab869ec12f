"""A reader of pprof's profile.proto, gzipped or not, that shares nothing with the exporter. Whatever the format forbids, and
fields that the exporter has no reason to write, are faults.

    profile = read_pprof.Profile(data)
    profile.total("wall")                      # nanoseconds
    profile.samples[0].stack                   # ("main", "work"), root first
"""

import gzip

VARINT, LENGTH = 0, 2


class Fault(AssertionError):
    pass


def require(condition, text):
    if not condition:
        raise Fault(text)


# Name and kind of each field by its number: "number", "numbers" (packed), "text", or the message it holds.
VALUE_TYPE = {1: ("type", "number"), 2: ("unit", "number")}
LABEL = {1: ("key", "number"), 2: ("str", "number")}
SAMPLE = {1: ("location_id", "numbers"), 2: ("value", "numbers"), 3: ("label", LABEL)}
MAPPING = {
    1: ("id", "number"),
    5: ("filename", "number"),
    6: ("build_id", "number"),
    7: ("has_functions", "number"),
}
LINE = {1: ("function_id", "number")}
LOCATION = {1: ("id", "number"), 2: ("mapping_id", "number"), 4: ("line", LINE)}
FUNCTION = {1: ("id", "number"), 2: ("name", "number")}
PROFILE = {
    1: ("sample_type", VALUE_TYPE),
    2: ("sample", SAMPLE),
    3: ("mapping", MAPPING),
    4: ("location", LOCATION),
    5: ("function", FUNCTION),
    6: ("string_table", "text"),
    9: ("time_nanos", "number"),
    10: ("duration_nanos", "number"),
    11: ("period_type", VALUE_TYPE),
    12: ("period", "number"),
    13: ("comment", "numbers"),
    14: ("default_sample_type", "number"),
}


def read_varint(data, at):
    value, shift = 0, 0
    while True:
        require(at < len(data) and shift < 70, "a number that does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            require(value < 1 << 64, "a number of more than 64 bits")
            require(byte != 0 or shift == 7, "a number longer than it must be")
            return value, at


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def read_packed(body):
    values, at = [], 0
    while at < len(body):
        value, at = read_varint(body, at)
        values.append(signed(value))
    return values


def decode(data, fields):
    """{name: [value, ...]} of a message."""
    message, at = {name: [] for name, _ in fields.values()}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        require(tag >> 3 in fields, f"a field {tag >> 3} among {[name for name, _ in fields.values()]}")
        name, kind = fields[tag >> 3]
        value, at = read_varint(data, at)
        require(tag & 7 == (VARINT if kind == "number" else LENGTH), f"{name}: wire type {tag & 7}")
        if kind == "number":
            message[name].append(signed(value))
            continue
        body, at = data[at : at + value], at + value
        require(at <= len(data), f"{name} is cut")
        if kind == "numbers":
            message[name].extend(read_packed(body))
        else:
            message[name].append(body.decode("utf-8") if kind == "text" else decode(body, kind))
    return message


def one(message, name, default=0):
    require(len(message[name]) <= 1, f"{name} twice")
    return message[name][0] if message[name] else default


class Sample:
    def __init__(self, stack, modules, values, labels):
        self.stack = stack  # names, root first
        self.modules = modules  # (file, build id) of each, or None
        self.values = values  # by type
        self.labels = labels


class Profile:
    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            require(data[3:8] == bytes(5), "a name or a time in the gzip header")
            data = gzip.decompress(data)
        self.message = decode(data, PROFILE)
        self.strings = self.message["string_table"]
        require(self.strings and self.strings[0] == "", "the first string is not empty")
        require(len(set(self.strings)) == len(self.strings), "a string twice")
        self.types = [(self.text(one(t, "type")), self.text(one(t, "unit"))) for t in self.message["sample_type"]]
        self.mappings = self.by_id("mapping")
        self.functions = self.by_id("function")
        self.locations = self.by_id("location")
        self.comments = [self.text(i) for i in self.message["comment"]]
        self.time_ns = one(self.message, "time_nanos")
        self.duration_ns = one(self.message, "duration_nanos")
        self.period = one(self.message, "period")
        self.default_type = self.text(one(self.message, "default_sample_type"))
        self.samples = [self.sample(message) for message in self.message["sample"]]
        require(self.default_type in [name for name, _ in self.types], f"default type {self.default_type!r}")

    def text(self, index):
        require(0 <= index < len(self.strings), f"string {index} of {len(self.strings)}")
        return self.strings[index]

    def by_id(self, name):
        items = {one(message, "id"): message for message in self.message[name]}
        require(len(items) == len(self.message[name]) and 0 not in items, f"{name}: an id twice, or none")
        return items

    def frame(self, location_id):
        require(location_id in self.locations, f"no location {location_id}")
        location = self.locations[location_id]
        function_id = one(one(location, "line", None), "function_id")
        require(function_id in self.functions, f"no function {function_id}")
        name = self.text(one(self.functions[function_id], "name"))
        require(name, "a function without a name")
        mapping_id = one(location, "mapping_id")
        require(mapping_id == 0 or mapping_id in self.mappings, f"no mapping {mapping_id}")
        mapping = self.mappings.get(mapping_id)
        if mapping is None:
            return name, None
        require(one(mapping, "has_functions") == 1, "a mapping that pprof would look for symbols of")
        return name, (self.text(one(mapping, "filename")), self.text(one(mapping, "build_id")))

    def sample(self, message):
        frames = [self.frame(i) for i in reversed(message["location_id"])]
        require(frames, "a sample without a stack")
        require(len(message["value"]) == len(self.types), f"values {message['value']}")
        require(all(value >= 0 for value in message["value"]), f"a negative value: {message['value']}")
        labels = {self.text(one(label, "key")): self.text(one(label, "str")) for label in message["label"]}
        require(len(labels) == len(message["label"]), "a label twice")
        require(all(labels) and all(labels.values()), f"an empty label: {labels}")
        values = dict(zip([name for name, _ in self.types], message["value"]))
        return Sample(tuple(n for n, _ in frames), tuple(m for _, m in frames), values, labels)

    def total(self, value_type):
        return sum(sample.values[value_type] for sample in self.samples)

    def sums_by_label(self, key, value_type):
        sums = {}
        for sample in self.samples:
            if key in sample.labels:
                sums[sample.labels[key]] = sums.get(sample.labels[key], 0) + sample.values[value_type]
        return sums
