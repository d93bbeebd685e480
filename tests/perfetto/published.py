"""Writes down the numbers and types of the fields of Perfetto's messages that we read or write.

    python3 -m venv /tmp/published && /tmp/published/bin/pip install perfetto==0.59.1 protobuf==7.36.2
    /tmp/published/bin/python tests/perfetto/published.py > crates/trace-convert/src/export/perfetto/published.txt

Each message has a line with its name, and an indented line for each field: number, name, type, and `repeated` and
`packed` where they apply. A field that is a message has its name if it is one of MESSAGES.
"""

import importlib.metadata

from google.protobuf import descriptor_pb2
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

MESSAGES = """
TracePacket ClockSnapshot ClockSnapshot.Clock TracePacketDefaults TrackEventDefaults
TrackDescriptor ProcessDescriptor ThreadDescriptor CounterDescriptor
TrackEvent TrackEvent.LegacyEvent DebugAnnotation
InternedData EventCategory EventName DebugAnnotationName InternedString Frame Callstack Mapping PerfSample
ProcessTree ProcessTree.Process ProcessTree.Thread AndroidLogPacket AndroidLogPacket.LogEvent Trigger
FtraceEventBundle FtraceEventBundle.CompactSched FtraceEvent PrintFtraceEvent
SchedSwitchFtraceEvent SchedWakingFtraceEvent SchedWakeupFtraceEvent SchedWakeupNewFtraceEvent
CpuFrequencyFtraceEvent CpuIdleFtraceEvent SoftirqEntryFtraceEvent SoftirqExitFtraceEvent
IrqHandlerEntryFtraceEvent IrqHandlerExitFtraceEvent SysEnterFtraceEvent SysExitFtraceEvent
TaskNewtaskFtraceEvent TaskRenameFtraceEvent
""".split()

PACKAGE = ".perfetto.protos."


def known(prefix, messages):
    for message in messages:
        yield prefix + message.name, message
        yield from known(prefix + message.name + ".", message.nested_type)


def kind(field):
    if field.type_name:
        name = field.type_name.removeprefix(PACKAGE)
        if field.type == field.TYPE_ENUM:
            return "enum"
        return name if name in MESSAGES else "message"
    return descriptor_pb2.FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def main():
    file = descriptor_pb2.FileDescriptorProto()
    perfetto_trace_pb2.DESCRIPTOR.CopyToProto(file)
    messages = dict(known("", file.message_type))
    version = importlib.metadata.version("perfetto")
    print(f"# Fields of Perfetto's messages, from the descriptors in the Python package perfetto {version}.")
    print("# Written by tests/perfetto/published.py.")
    for name in MESSAGES:
        print(name)
        for field in sorted(messages[name].field, key=lambda field: field.number):
            words = [str(field.number), field.name, kind(field)]
            words += ["repeated"] if field.label == field.LABEL_REPEATED else []
            words += ["packed"] if field.options.packed else []
            print("  " + " ".join(words))


main()
