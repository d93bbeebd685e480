//! The instrumentation macros. Names and order of arguments are Fuchsia's.

mod tracks;

/// The nested pairs that a list of values becomes.
#[doc(hidden)]
#[macro_export]
macro_rules! __values {
    () => { () };
    ($value:expr $(, $rest:expr)*) => {
        (
            $crate::args::Written::<_, { $crate::is_literal(::core::stringify!($value)) }>(
                $crate::args::IntoValue::into_value($value),
            ),
            $crate::__values!($($rest),*),
        )
    };
}

/// The same, of values that stand at no call site.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_values {
    () => { () };
    ($value:expr $(, $rest:expr)*) => {
        ($crate::args::IntoValue::into_value($value), $crate::__plain_values!($($rest),*))
    };
}

/// One sentence for what is no call of a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __misused {
    ($form:literal) => {
        ::core::compile_error!(::core::concat!("expected `", $form, "`"))
    };
}

/// The same sentence where a text stands in the place of something else: the arguments are in another order.
#[doc(hidden)]
#[macro_export]
macro_rules! __no_text {
    ($value:expr, $form:literal) => {
        const _: () =
            $crate::assert_no_text(::core::stringify!($value), ::core::concat!("expected `", $form, "`"));
    };
}

/// A static that the engine writes, which no compiler can see.
#[cfg(not(any(feature = "off", elsewhere)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __written_by_engine {
    ($site:item) => {
        #[used]
        #[unsafe(link_section = "trace_sites_1")]
        $site
    };
}

/// A static that is not written: nothing of it stays.
#[cfg(any(feature = "off", elsewhere))]
#[doc(hidden)]
#[macro_export]
macro_rules! __written_by_engine {
    ($site:item) => {
        $site
    };
}

/// The static of a call site.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($category:expr, $name:expr $(, $key:expr)*) => {{
        static ARGUMENTS: [$crate::ArgName; <[&str]>::len(&[$($key),*])] =
            [$($crate::ArgName::new($key)),*];
        $crate::__written_by_engine! {
            static SITE: $crate::Site = $crate::Site::new($category, $name, &ARGUMENTS);
        }
        &SITE
    }};
}

/// One event, if its site is on.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($type:ident, $extra:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)*) => {{
        let site = $crate::__site!($category, $name $(, $key)*);
        if site.is_on() {
            $crate::write_event(
                site,
                $crate::Event { event_type: $crate::EventType::$type, start: None, extra: $extra },
                &$crate::__values!($($value),*),
            );
        }
    }};
}

/// Records a moment: `instant!(category, name, scope, "key" => value, …)`.
///
/// The scope says what the moment concerns: the thread, the process or everything. Values are evaluated
/// only while the category is enabled.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Scope, instant};
/// instant!("app", "cache miss", Scope::Thread, "key" => "user/7", "size" => 4096_u32);
/// ```
#[macro_export]
macro_rules! instant {
    ($category:expr, $name:expr, $scope:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($scope, "instant!(category, name, scope, \"key\" => value, …)");
        $crate::__event!(Instant, $crate::scope_word($scope), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("instant!(category, name, scope, \"key\" => value, …)") };
}

/// Records samples of a counter, one for each argument: `counter!(category, name, id, "series" => value, …)`.
///
/// The id distinguishes instances of one counter. At least one numeric argument.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::counter;
/// counter!("memory", "heap", 0, "used" => 10_u64 << 20, "free" => 5_u64 << 20);
/// ```
#[macro_export]
macro_rules! counter {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)+ $(,)?) => {{
        $crate::__no_text!($id, "counter!(category, name, id, \"key\" => value, …)");
        $crate::__event!(Counter, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("counter!(category, name, id, \"key\" => value, …)") };
}

/// Records the rest of the enclosing block as one complete duration, written when the block is left:
/// `duration!(category, name, "key" => value, …)`.
///
/// Values are evaluated at the beginning. Nothing is recorded of a block that is entered before the recording
/// starts, or left after it has ended. Category and name are constant; for texts that are known only at run
/// time, see [`DynamicSite`](crate::DynamicSite).
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::duration;
/// fn draw(frame: u64) {
///     duration!("gfx", "draw", "frame" => frame);
///     // …
/// }
/// # draw(1);
/// ```
#[macro_export]
macro_rules! duration {
    ($category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        let _trace_duration = {
            let site = $crate::__site!($category, $name $(, $key)*);
            let state = site.state();
            if state.is_on() {
                $crate::DurationScope::begin(site, state, $crate::__values!($($value),*))
            } else {
                $crate::DurationScope::off()
            }
        };
    };
    ($($wrong:tt)*) => { $crate::__misused!("duration!(category, name, \"key\" => value, …)") };
}

/// Begins a duration on this thread: `duration_begin!(category, name, "key" => value, …)`.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{duration_begin, duration_end};
/// duration_begin!("io", "flush", "bytes" => 512_u32);
/// duration_end!("io", "flush", "ok" => true);
/// ```
#[macro_export]
macro_rules! duration_begin {
    ($category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(DurationBegin, None, $category, $name $(, $key => $value)*)
    };
    ($($wrong:tt)*) => { $crate::__misused!("duration_begin!(category, name, \"key\" => value, …)") };
}

/// Ends the innermost duration begun on this thread; see [`duration_begin!`].
#[macro_export]
macro_rules! duration_end {
    ($category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(DurationEnd, None, $category, $name $(, $key => $value)*)
    };
    ($($wrong:tt)*) => { $crate::__misused!("duration_end!(category, name, \"key\" => value, …)") };
}

/// Records a duration that began at a moment taken with [`now`](crate::now) and ends here:
/// `duration_complete!(category, name, start, "key" => value, …)`.
///
/// For spans that are not a block. `start` may be before the start of the recording.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{duration_complete, now};
/// let start = now();
/// // …
/// duration_complete!("io", "read", start, "bytes" => 4096_u32);
/// ```
#[macro_export]
macro_rules! duration_complete {
    ($category:expr, $name:expr, $start:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($start, "duration_complete!(category, name, start, \"key\" => value, …)");
        let site = $crate::__site!($category, $name $(, $key)*);
        if site.is_on() {
            let start: $crate::Ticks = $start;
            $crate::write_event(
                site,
                $crate::Event { event_type: $crate::EventType::DurationComplete, start: Some(start.0), extra: None },
                &$crate::__values!($($value),*),
            );
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("duration_complete!(category, name, start, \"key\" => value, …)") };
}

/// Begins an operation that may cross threads: `async_begin!(id, category, name, "key" => value, …)`.
///
/// The parts of one operation share id, category and name within the process. The id comes first.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Id, async_begin, async_end, async_instant};
/// let id = Id::new();
/// async_begin!(id, "net", "request", "url" => "/index");
/// async_instant!(id, "net", "request", "bytes" => 1500_u32);
/// async_end!(id, "net", "request", "status" => 200_u16);
/// ```
#[macro_export]
macro_rules! async_begin {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "async_begin!(id, category, name, \"key\" => value, …)");
        $crate::__event!(AsyncBegin, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("async_begin!(id, category, name, \"key\" => value, …)") };
}

/// Marks a moment of an operation that may cross threads; see [`async_begin!`].
#[macro_export]
macro_rules! async_instant {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "async_instant!(id, category, name, \"key\" => value, …)");
        $crate::__event!(AsyncInstant, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("async_instant!(id, category, name, \"key\" => value, …)") };
}

/// Ends an operation that may cross threads; see [`async_begin!`].
#[macro_export]
macro_rules! async_end {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "async_end!(id, category, name, \"key\" => value, …)");
        $crate::__event!(AsyncEnd, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("async_end!(id, category, name, \"key\" => value, …)") };
}

/// Begins an operation that may cross threads and gives a guard that ends it when it is dropped:
/// `async_enter!(id, category, name, "key" => value, …)`. None while the category is not recorded.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Id, async_enter};
/// let request = async_enter!(Id::new(), "net", "request", "url" => "/index");
/// std::thread::spawn(move || drop(request)).join().unwrap();
/// ```
#[macro_export]
macro_rules! async_enter {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "async_enter!(id, category, name, \"key\" => value, …)");
        let site = $crate::__site!($category, $name);
        if site.is_on() {
            let id = $crate::Id::from($id).0;
            $crate::__event!(AsyncBegin, Some(id), $category, $name $(, $key => $value)*);
            Some($crate::AsyncScope::new(site, id))
        } else {
            None
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("async_enter!(id, category, name, \"key\" => value, …)") };
}

/// Begins a flow from the enclosing duration to others, of any thread or process that knows the id:
/// `flow_begin!(category, name, flow_id, "key" => value, …)`.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Id, duration, flow_begin, flow_end, flow_step};
/// let id = Id::new();
/// {
///     duration!("ipc", "send");
///     flow_begin!("ipc", "message", id);
/// }
/// {
///     duration!("ipc", "forward");
///     flow_step!("ipc", "message", id);
/// }
/// {
///     duration!("ipc", "receive");
///     flow_end!("ipc", "message", id);
/// }
/// ```
#[macro_export]
macro_rules! flow_begin {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "flow_begin!(category, name, id, \"key\" => value, …)");
        $crate::__event!(FlowBegin, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("flow_begin!(category, name, id, \"key\" => value, …)") };
}

/// Continues a flow in the enclosing duration; see [`flow_begin!`].
#[macro_export]
macro_rules! flow_step {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "flow_step!(category, name, id, \"key\" => value, …)");
        $crate::__event!(FlowStep, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("flow_step!(category, name, id, \"key\" => value, …)") };
}

/// Ends a flow in the enclosing duration; see [`flow_begin!`].
#[macro_export]
macro_rules! flow_end {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "flow_end!(category, name, id, \"key\" => value, …)");
        $crate::__event!(FlowEnd, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("flow_end!(category, name, id, \"key\" => value, …)") };
}

/// Begins a flow in a duration of its own, all at one moment:
/// `instaflow_begin!(category, flow_name, step_name, flow_id, "key" => value, …)`.
///
/// For flows outside of any duration. Both the duration and the flow have the arguments.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Id, instaflow_begin, instaflow_end, instaflow_step};
/// let id = Id::new();
/// instaflow_begin!("queue", "job", "pushed", id, "length" => 3_u32);
/// instaflow_step!("queue", "job", "moved", id);
/// instaflow_end!("queue", "job", "popped", id);
/// ```
#[macro_export]
macro_rules! instaflow_begin {
    ($category:expr, $name:expr, $step:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "instaflow_begin!(category, name, step, id, \"key\" => value, …)");
        $crate::__instaflow!(FlowBegin, $category, $name, $step, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("instaflow_begin!(category, name, step, id, \"key\" => value, …)") };
}

/// Continues a flow in a duration of its own; see [`instaflow_begin!`].
#[macro_export]
macro_rules! instaflow_step {
    ($category:expr, $name:expr, $step:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "instaflow_step!(category, name, step, id, \"key\" => value, …)");
        $crate::__instaflow!(FlowStep, $category, $name, $step, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("instaflow_step!(category, name, step, id, \"key\" => value, …)") };
}

/// Ends a flow in a duration of its own; see [`instaflow_begin!`].
#[macro_export]
macro_rules! instaflow_end {
    ($category:expr, $name:expr, $step:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "instaflow_end!(category, name, step, id, \"key\" => value, …)");
        $crate::__instaflow!(FlowEnd, $category, $name, $step, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("instaflow_end!(category, name, step, id, \"key\" => value, …)") };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __instaflow {
    ($type:ident, $category:expr, $name:expr, $step:expr, $id:expr $(, $key:expr => $value:expr)*) => {{
        let step = $crate::__site!($category, $step $(, $key)*);
        if step.is_on() {
            $crate::write_instaflow(
                step,
                $crate::__site!($category, $name $(, $key)*),
                $crate::EventType::$type,
                $crate::Id::from($id).0,
                &$crate::__values!($($value),*),
            );
        }
    }};
}

/// Records a message: `log!(category, "format {}", value, …)`. Formatting a message of more than 1024 bytes
/// allocates memory.
///
/// ```
/// # use trace_engine as trace_provider;
/// trace_provider::log!("app", "retrying in {} s", 5);
/// ```
#[macro_export]
macro_rules! log {
    ($category:expr, $($format:tt)+) => {{
        let site = $crate::__site!($category, $category);
        if site.is_on() {
            $crate::write_formatted_log(site, ::core::format_args!($($format)+));
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("log!(category, \"text {}\", value)") };
}

/// Records bytes at this moment: `blob!(category, name, bytes, "key" => value, …)`.
///
/// A large blob has up to 256 KiB, or half of the buffer. Perfetto's reader of FXT skips those below 32 KiB
/// and fails at larger ones; the pieces of [`blob_record!`] are safe for every reader.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::blob;
/// blob!("net", "packet", &[0x45, 0x00, 0x00, 0x1c], "port" => 443_u16);
/// ```
#[macro_export]
macro_rules! blob {
    ($category:expr, $name:expr, $bytes:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        let site = $crate::__site!($category, $name $(, $key)*);
        if site.is_on() {
            $crate::write_large_blob(
                site,
                ::core::convert::AsRef::<[u8]>::as_ref($bytes),
                &$crate::__values!($($value),*),
            );
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("blob!(category, name, bytes, \"key\" => value, …)") };
}

/// Records bytes without time and thread: `blob_attachment!(category, name, bytes)`; else as [`blob!`].
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::blob_attachment;
/// blob_attachment!("gfx", "shader", b"void main() {}");
/// ```
#[macro_export]
macro_rules! blob_attachment {
    ($category:expr, $name:expr, $bytes:expr $(,)?) => {{
        let site = $crate::__site!($category, $name);
        if site.is_on() {
            $crate::write_attachment(site, ::core::convert::AsRef::<[u8]>::as_ref($bytes));
        }
    }};
    ($($wrong:tt)*) => {
        $crate::__misused!("blob_attachment!(category, name, bytes)")
    };
}

/// Records a piece of a named object: `blob_record!(category, blob_type, name, bytes)`, at most 32 752 bytes.
/// Pieces of one name follow each other.
///
/// Blob types are 1 for data, 2 for last-branch records and 3 for whole packets of a Perfetto trace.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::blob_record;
/// blob_record!("app", 1, "configuration", b"level=7");
/// ```
#[macro_export]
macro_rules! blob_record {
    ($category:expr, $blob_type:expr, $name:expr, $bytes:expr $(,)?) => {{
        let site = $crate::__site!($category, $name);
        if site.is_on() {
            $crate::write_blob(site, $blob_type, ::core::convert::AsRef::<[u8]>::as_ref($bytes));
        }
    }};
    ($($wrong:tt)*) => {
        $crate::__misused!("blob_record!(category, blob type, name, bytes)")
    };
}

/// Says what a koid stands for: `kernel_object!(category, object_type, koid, name, "key" => value, …)`.
///
/// Names of processes (type 1) and threads (type 2, with the koid argument `process`) are shown by viewers;
/// those of this process are recorded automatically.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Koid, kernel_object};
/// kernel_object!("vm", 2, Koid(7001), "guest cpu 0", "process" => Koid(7000));
/// ```
#[macro_export]
macro_rules! kernel_object {
    ($category:expr, $object_type:expr, $koid:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        let site = $crate::__site!($category, $category $(, $key)*);
        if site.is_on() {
            $crate::write_kernel_object(
                site,
                $object_type,
                $koid,
                ::core::convert::AsRef::<str>::as_ref($name),
                &$crate::__values!($($value),*),
            );
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("kernel_object!(category, object type, koid, name, \"key\" => value, …)") };
}

/// Records that a CPU switches from one thread to another, for runtimes with a scheduler of their own:
/// `context_switch!(category, cpu, outgoing_state, outgoing, incoming, "key" => value, …)`.
///
/// Known arguments are `incoming_weight` and `outgoing_weight`, of type `i32`; a weight of `i32::MIN` marks
/// an idle CPU.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Koid, ThreadState, context_switch};
/// let (idle, task) = (Koid(1 << 63), Koid(1 << 63 | 7));
/// context_switch!("tasks", 0, ThreadState::BLOCKED, task, idle, "incoming_weight" => i32::MIN);
/// ```
#[macro_export]
macro_rules! context_switch {
    ($category:expr, $cpu:expr, $state:expr, $outgoing:expr, $incoming:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        let site = $crate::__site!($category, $category $(, $key)*);
        if site.is_on() {
            let values = $crate::__values!($($value),*);
            $crate::write_context_switch(site, $cpu, $state, $outgoing, $incoming, &values);
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("context_switch!(category, cpu, state, outgoing, incoming, \"key\" => value, …)") };
}

/// Records that a thread becomes ready to run: `thread_wakeup!(category, cpu, thread, "key" => value, …)`.
///
/// Known arguments are `weight`, of type `i32`, and `waker`, a koid.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Koid, thread_wakeup};
/// thread_wakeup!("tasks", 0, Koid(1 << 63 | 7), "weight" => 100, "waker" => Koid(1 << 63 | 8));
/// ```
#[macro_export]
macro_rules! thread_wakeup {
    ($category:expr, $cpu:expr, $thread:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        let site = $crate::__site!($category, $category $(, $key)*);
        if site.is_on() {
            $crate::write_thread_wakeup(site, $cpu, $thread, &$crate::__values!($($value),*));
        }
    }};
    ($($wrong:tt)*) => { $crate::__misused!("thread_wakeup!(category, cpu, thread, \"key\" => value, …)") };
}

/// Raises an alert if the category is enabled: `alert!(category, name)`. The name is sent to the manager
/// directly, not through the buffer; a client may react to it by stopping the recording or taking a snapshot.
/// In the trace, it is an instant `alert` of category `trace` on this thread, with the argument `name`, even
/// if the category `trace` is not enabled.
///
/// Names have at most 14 bytes. A longer literal does not compile; longer texts of other kinds are cut. Not
/// for signal handlers.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::alert;
/// alert!("app", "frame_dropped");
/// ```
///
/// ```compile_fail
/// # use trace_engine as trace_provider;
/// trace_provider::alert!("app", "a_frame_was_dropped");
/// ```
#[macro_export]
macro_rules! alert {
    ($category:expr, $name:literal $(,)?) => {{
        const NAME: &str = $name;
        const { assert!(NAME.len() <= $crate::MAX_ALERT_BYTES, "an alert's name has at most 14 bytes") };
        let site = $crate::__site!($category, "");
        if site.is_on() {
            $crate::send_literal_alert(site, NAME);
        }
    }};
    ($category:expr, $name:expr $(,)?) => {{
        let site = $crate::__site!($category, "");
        if site.is_on() {
            $crate::send_alert(site, $name);
        }
    }};
    ($($wrong:tt)*) => {
        $crate::__misused!("alert!(category, name)")
    };
}

/// Whether events of a category are recorded now, to guard work that only a trace needs.
///
/// ```
/// # use trace_engine as trace_provider;
/// if trace_provider::category_enabled!("app") {
///     // collect something expensive
/// }
/// ```
#[macro_export]
macro_rules! category_enabled {
    ($category:expr) => {
        $crate::__site!($category, "").is_on()
    };
    ($($wrong:tt)*) => {
        $crate::__misused!("category_enabled!(category)")
    };
}
