//! The instrumentation macros. Names and order of arguments are Fuchsia's.

/// The nested pairs that a list of values becomes.
#[doc(hidden)]
#[macro_export]
macro_rules! __values {
    () => { () };
    ($value:expr $(, $rest:expr)*) => {
        ($crate::args::IntoValue::into_value($value), $crate::__values!($($rest),*))
    };
}

/// The static of a call site.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($category:expr, $name:expr $(, $key:expr)*) => {{
        static ARGUMENTS: [$crate::ArgName; <[&str]>::len(&[$($key),*])] =
            [$($crate::ArgName::new($key)),*];
        #[unsafe(link_section = "trace_sites")]
        static SITE: $crate::Site = $crate::Site::new($category, $name, &ARGUMENTS);
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
/// use trace_engine::{Scope, instant};
/// instant!("app", "cache miss", Scope::Thread, "key" => "user/7", "size" => 4096_u32);
/// ```
#[macro_export]
macro_rules! instant {
    ($category:expr, $name:expr, $scope:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(Instant, $crate::scope_word($scope), $category, $name $(, $key => $value)*)
    };
}

/// Records samples of a counter, one for each argument: `counter!(category, name, id, "series" => value, …)`.
///
/// The id tells instances of one counter apart. At least one numeric argument.
///
/// ```
/// use trace_engine::counter;
/// counter!("memory", "heap", 0, "used" => 10_u64 << 20, "free" => 5_u64 << 20);
/// ```
#[macro_export]
macro_rules! counter {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)+ $(,)?) => {
        $crate::__event!(Counter, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Records the rest of the enclosing block as one complete duration, written when the block is left:
/// `duration!(category, name, "key" => value, …)`.
///
/// Values are taken at the beginning. A block that was entered before the trace started leaves nothing.
///
/// ```
/// use trace_engine::duration;
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
            if site.is_on() {
                Some($crate::DurationScope::begin(site, $crate::__values!($($value),*)))
            } else {
                None
            }
        };
    };
}

/// Begins a duration on this thread: `duration_begin!(category, name, "key" => value, …)`.
///
/// ```
/// use trace_engine::{duration_begin, duration_end};
/// duration_begin!("io", "flush", "bytes" => 512_u32);
/// duration_end!("io", "flush", "ok" => true);
/// ```
#[macro_export]
macro_rules! duration_begin {
    ($category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(DurationBegin, None, $category, $name $(, $key => $value)*)
    };
}

/// Ends the innermost duration begun on this thread; see [`duration_begin!`].
#[macro_export]
macro_rules! duration_end {
    ($category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(DurationEnd, None, $category, $name $(, $key => $value)*)
    };
}

/// Begins an operation that may cross threads: `async_begin!(id, category, name, "key" => value, …)`.
///
/// The parts of one operation share id, category and name within the process. The id comes first.
///
/// ```
/// use trace_engine::{Id, async_begin, async_end, async_instant};
/// let id = Id::new();
/// async_begin!(id, "net", "request", "url" => "/index");
/// async_instant!(id, "net", "request", "bytes" => 1500_u32);
/// async_end!(id, "net", "request", "status" => 200_u16);
/// ```
#[macro_export]
macro_rules! async_begin {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(AsyncBegin, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Marks a moment of an operation that may cross threads; see [`async_begin!`].
#[macro_export]
macro_rules! async_instant {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(AsyncInstant, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Ends an operation that may cross threads; see [`async_begin!`].
#[macro_export]
macro_rules! async_end {
    ($id:expr, $category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(AsyncEnd, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Begins a flow from the enclosing duration to others, of any thread or process that knows the id:
/// `flow_begin!(category, name, flow_id, "key" => value, …)`.
///
/// ```
/// use trace_engine::{Id, duration, flow_begin, flow_end, flow_step};
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
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(FlowBegin, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Continues a flow in the enclosing duration; see [`flow_begin!`].
#[macro_export]
macro_rules! flow_step {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(FlowStep, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Ends a flow in the enclosing duration; see [`flow_begin!`].
#[macro_export]
macro_rules! flow_end {
    ($category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::__event!(FlowEnd, Some($crate::Id::from($id).0), $category, $name $(, $key => $value)*)
    };
}

/// Whether events of a category are recorded now, to guard work that only a trace needs.
///
/// ```
/// if trace_engine::category_enabled!("app") {
///     // collect something expensive
/// }
/// ```
#[macro_export]
macro_rules! category_enabled {
    ($category:expr) => {
        $crate::__site!($category, "").is_on()
    };
}
