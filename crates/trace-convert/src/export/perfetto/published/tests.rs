//! Every field that we declare has the number, the name and the type that Perfetto publishes.

use super::*;

/// Where the declarations are.
const DECLARED: &str = include_str!("../messages.rs");

/// Names that the language keeps for itself.
const RENAMED: [(&str, &str); 1] = [("kind", "type")];

/// Declared types that are not the published ones, and why that is sound.
const OTHER_TYPES: [(&str, &str, &str, &str); 2] = [
    // Clocks of the enumeration and others have one type here.
    ("ClockSnapshot", "primary_trace_clock", "uint32", "enum"),
    // Text in fact; what is not UTF-8 in it is replaced as in all texts.
    ("InternedText", "str", "string", "bytes"),
];

/// Our messages, and Perfetto's that they stand for.
const MESSAGES: [(&str, &[&str]); 41] = [
    ("TracePacket", &["TracePacket"]),
    ("Trigger", &["Trigger"]),
    ("ClockSnapshot", &["ClockSnapshot"]),
    ("Clock", &["ClockSnapshot.Clock"]),
    ("TrackDescriptor", &["TrackDescriptor"]),
    ("ProcessDescriptor", &["ProcessDescriptor"]),
    ("ThreadDescriptor", &["ThreadDescriptor"]),
    ("CounterDescriptor", &["CounterDescriptor"]),
    ("TrackEvent", &["TrackEvent"]),
    ("LegacyEvent", &["TrackEvent.LegacyEvent"]),
    ("DebugAnnotation", &["DebugAnnotation"]),
    ("InternedData", &["InternedData"]),
    ("InternedString", &["InternedString"]),
    ("Frame", &["Frame"]),
    ("Callstack", &["Callstack"]),
    ("Mapping", &["Mapping"]),
    ("PerfSample", &["PerfSample"]),
    ("InternedName", &["EventCategory", "EventName", "DebugAnnotationName"]),
    ("AndroidLogPacket", &["AndroidLogPacket"]),
    ("LogEvent", &["AndroidLogPacket.LogEvent"]),
    ("FtraceEventBundle", &["FtraceEventBundle"]),
    ("FtraceBundleHead", &["FtraceEventBundle"]),
    ("FtraceEvent", &["FtraceEvent"]),
    ("SchedSwitch", &["SchedSwitchFtraceEvent"]),
    ("SchedWaking", &["SchedWakingFtraceEvent", "SchedWakeupFtraceEvent", "SchedWakeupNewFtraceEvent"]),
    ("TracePacketDefaults", &["TracePacketDefaults"]),
    ("TrackEventDefaults", &["TrackEventDefaults"]),
    ("InternedText", &["InternedString"]),
    ("ProcessTree", &["ProcessTree"]),
    ("Process", &["ProcessTree.Process"]),
    ("TreeThread", &["ProcessTree.Thread"]),
    ("Print", &["PrintFtraceEvent"]),
    ("PowerState", &["CpuFrequencyFtraceEvent", "CpuIdleFtraceEvent"]),
    ("SoftirqEntry", &["SoftirqEntryFtraceEvent", "SoftirqExitFtraceEvent"]),
    ("IrqHandlerEntry", &["IrqHandlerEntryFtraceEvent"]),
    ("IrqHandlerExit", &["IrqHandlerExitFtraceEvent"]),
    ("SysEnter", &["SysEnterFtraceEvent"]),
    ("SysExit", &["SysExitFtraceEvent"]),
    ("TaskNewtask", &["TaskNewtaskFtraceEvent"]),
    ("TaskRename", &["TaskRenameFtraceEvent"]),
    ("CompactSched", &["FtraceEventBundle.CompactSched"]),
];

/// A declared field.
#[derive(Debug)]
pub(crate) struct Declared {
    pub number: u32,
    pub name: &'static str,
    /// The type as prost has it: `message`, `string`, `uint64`.
    pub kind: &'static str,
    pub is_repeated: bool,
    /// Repeated numbers are written one by one.
    pub is_unpacked: bool,
    /// The message's own name, of fields that are messages.
    pub message: &'static str,
}

/// What the source declares: each message with its fields.
pub(crate) fn declared() -> Vec<(&'static str, Vec<Declared>)> {
    let mut messages: Vec<(&str, Vec<Declared>)> = Vec::new();
    let (_, table) = DECLARED.split_once("\nmessages! {\n").unwrap();
    for line in table.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            messages.push((name, Vec::new()));
        } else if let Some(field) = line.strip_suffix("];") {
            let (field, encoding) = field.split_once(" [").unwrap();
            let (name, declared) = field.split_once(": ").unwrap();
            let (declared, number) = declared.split_once(" = ").unwrap();
            let parts: Vec<&str> = encoding.split(", ").collect();
            let fields = &mut messages.last_mut().unwrap().1;
            fields.push(Declared {
                number: number.parse().unwrap(),
                name,
                kind: parts[0].split(' ').next().unwrap(),
                is_repeated: parts.contains(&"repeated"),
                is_unpacked: parts.contains(&"packed = \"false\""),
                message: declared.rsplit('<').next().unwrap().trim_end_matches('>'),
            });
        }
    }
    messages
}

/// What is wrong with a declared field, compared with a published message.
fn problem(message: &str, field: &Declared, published: &str) -> Option<String> {
    let name = RENAMED.iter().find(|(ours, _)| *ours == field.name).map_or(field.name, |(_, theirs)| theirs);
    let found = fields(published).iter().find(|(number, ..)| *number == field.number);
    let Some((_, found, kind)) = found else {
        return Some(format!("{published} has no field {}", field.number));
    };
    if *found != name {
        return Some(format!("field {} of {published} is {found}, not {name}", field.number));
    }
    let mut words = kind.split(' ');
    let kind = words.next().unwrap();
    let (is_repeated, is_packed) = (words.next() == Some("repeated"), words.next() == Some("packed"));
    let is_number = !["string", "bytes", "message"].contains(&field.kind);
    if is_repeated != field.is_repeated || is_repeated && is_number && is_packed == field.is_unpacked {
        return Some(format!("{name} of {published} is repeated or packed otherwise"));
    }
    let is_same = match field.kind {
        "message" => stands_for(field.message).contains(&kind),
        // Values of enumerations are numbers of 32 bits.
        "int32" => ["int32", "enum"].contains(&kind),
        other => other == kind || OTHER_TYPES.contains(&(message, name, other, kind)),
    };
    (!is_same).then(|| format!("{name} of {published} is {kind}, not {}", field.kind))
}

fn stands_for(message: &str) -> &'static [&'static str] {
    MESSAGES.iter().find(|(ours, _)| *ours == message).unwrap_or_else(|| panic!("{message}: whose?")).1
}

//= docs/import.md#perfetto
#[test]
fn every_declared_field_is_published_so() {
    let declared = declared();
    let mut problems = Vec::new();
    for (message, fields) in &declared {
        for published in stands_for(message) {
            problems.extend(fields.iter().filter_map(|field| problem(message, field, published)));
        }
    }
    assert_eq!(problems, Vec::<String>::new());
    // All of them were looked at.
    assert_eq!(declared.len(), MESSAGES.len());
    assert_eq!(
        declared.iter().map(|(_, fields)| fields.len()).sum::<usize>(),
        DECLARED.matches("];\n").count()
    );
}

#[test]
fn fields_have_names() {
    assert_eq!(name("TracePacket", 7), Some("sys_stats"));
    assert_eq!(name("TracePacket", 14), None);
    assert_eq!(name("FtraceEvent", 37), Some("irq_handler_exit"));
    assert_eq!(name("NoSuchMessage", 1), None);
}
