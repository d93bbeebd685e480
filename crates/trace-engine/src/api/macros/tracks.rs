//! Macros for what happens on no thread in particular: virtual threads, tracks, futures.

/// Begins a duration on a virtual thread, such as a queue of the hardware or a task of a runtime:
/// `vthread_duration_begin!(category, name, vthread_name, vthread_id, "key" => value, …)`.
///
/// The id distinguishes virtual threads of the process; the name is shown for the id it was first used with.
/// Perfetto's reader sees the lower 32 bits only: an id above 2²² cannot be mistaken for a thread there.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{vthread_duration_begin, vthread_duration_end, vthread_flow_begin};
/// let queue = 1 << 24;
/// vthread_duration_begin!("gpu", "draw", "queue 0", queue, "triangles" => 12_u32);
/// vthread_flow_begin!("gpu", "frame", "queue 0", queue, 1);
/// vthread_duration_end!("gpu", "draw", "queue 0", queue);
/// ```
#[macro_export]
macro_rules! vthread_duration_begin {
    ($category:expr, $name:expr, $thread:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "vthread_duration_begin!(category, name, thread, id, \"key\" => value, …)");
        $crate::__virtual!(DurationBegin, None, $category, $name, $thread, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("vthread_duration_begin!(category, name, thread, id, \"key\" => value, …)") };
}

/// Ends the innermost duration of a virtual thread; see [`vthread_duration_begin!`].
#[macro_export]
macro_rules! vthread_duration_end {
    ($category:expr, $name:expr, $thread:expr, $id:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($id, "vthread_duration_end!(category, name, thread, id, \"key\" => value, …)");
        $crate::__virtual!(DurationEnd, None, $category, $name, $thread, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("vthread_duration_end!(category, name, thread, id, \"key\" => value, …)") };
}

/// Begins a flow in the enclosing duration of a virtual thread:
/// `vthread_flow_begin!(category, name, vthread_name, vthread_id, flow_id, "key" => value, …)`;
/// see [`vthread_duration_begin!`].
#[macro_export]
macro_rules! vthread_flow_begin {
    ($category:expr, $name:expr, $thread:expr, $id:expr, $flow:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($flow, "vthread_flow_begin!(category, name, thread, id, flow, \"key\" => value, …)");
        $crate::__virtual!(FlowBegin, Some($crate::Id::from($flow).0), $category, $name, $thread, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("vthread_flow_begin!(category, name, thread, id, flow, \"key\" => value, …)") };
}

/// Continues a flow on a virtual thread; see [`vthread_flow_begin!`].
#[macro_export]
macro_rules! vthread_flow_step {
    ($category:expr, $name:expr, $thread:expr, $id:expr, $flow:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($flow, "vthread_flow_step!(category, name, thread, id, flow, \"key\" => value, …)");
        $crate::__virtual!(FlowStep, Some($crate::Id::from($flow).0), $category, $name, $thread, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("vthread_flow_step!(category, name, thread, id, flow, \"key\" => value, …)") };
}

/// Ends a flow on a virtual thread; see [`vthread_flow_begin!`].
#[macro_export]
macro_rules! vthread_flow_end {
    ($category:expr, $name:expr, $thread:expr, $id:expr, $flow:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($flow, "vthread_flow_end!(category, name, thread, id, flow, \"key\" => value, …)");
        $crate::__virtual!(FlowEnd, Some($crate::Id::from($flow).0), $category, $name, $thread, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("vthread_flow_end!(category, name, thread, id, flow, \"key\" => value, …)") };
}

/// Records samples of a counter of a virtual thread:
/// `vthread_counter!(category, name, vthread_name, vthread_id, counter_id, "series" => value, …)`; see
/// [`vthread_duration_begin!`] and [`counter!`].
#[macro_export]
macro_rules! vthread_counter {
    ($category:expr, $name:expr, $thread:expr, $id:expr, $counter:expr $(, $key:expr => $value:expr)+ $(,)?) => {{
        $crate::__no_text!($counter, "vthread_counter!(category, name, thread, id, counter, \"key\" => value, …)");
        $crate::__virtual!(Counter, Some($crate::Id::from($counter).0), $category, $name, $thread, $id $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("vthread_counter!(category, name, thread, id, counter, \"key\" => value, …)") };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __virtual {
    ($type:ident, $extra:expr, $category:expr, $name:expr, $thread:expr, $id:expr $(, $key:expr => $value:expr)*) => {
        $crate::__virtual!(
            @named $crate::VirtualName {
                text: ::core::convert::AsRef::<str>::as_ref($thread),
                is_literal: const { $crate::is_literal(::core::stringify!($thread)) },
            },
            $type, $extra, $category, $name, $id $(, $key => $value)*
        )
    };
    (@named $thread:expr, $type:ident, $extra:expr, $category:expr, $name:expr, $id:expr $(, $key:expr => $value:expr)*) => {{
        let site = $crate::__site!($category, $name $(, $key)*);
        if site.is_on() {
            $crate::write_virtual(
                site,
                ($thread, $id),
                $crate::Event { event_type: $crate::EventType::$type, start: None, extra: $extra },
                &$crate::__values!($($value),*),
            );
        }
    }};
}

/// Records a moment of a [`Track`](crate::Track): `track_instant!(category, track, name, "key" => value, …)`.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{Track, track_duration, track_duration_begin, track_duration_end, track_instant};
/// static UPLOADS: Track = Track::new("uploads");
/// track_duration_begin!("net", UPLOADS, "upload", "bytes" => 4096_u32);
/// track_instant!("net", UPLOADS, "first byte");
/// track_duration_end!("net", UPLOADS, "upload");
/// {
///     track_duration!("net", UPLOADS, "cleanup");
/// }
/// ```
#[macro_export]
macro_rules! track_instant {
    ($category:expr, $track:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($track, "track_instant!(category, track, name, \"key\" => value, …)");
        $crate::__virtual!(@named $track.virtual_name(), Instant, None, $category, $name, $track.id() $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("track_instant!(category, track, name, \"key\" => value, …)") };
}

/// Begins a duration of a track: `track_duration_begin!(category, track, name, "key" => value, …)`; see
/// [`track_instant!`].
#[macro_export]
macro_rules! track_duration_begin {
    ($category:expr, $track:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($track, "track_duration_begin!(category, track, name, \"key\" => value, …)");
        $crate::__virtual!(@named $track.virtual_name(), DurationBegin, None, $category, $name, $track.id() $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("track_duration_begin!(category, track, name, \"key\" => value, …)") };
}

/// Ends the innermost duration of a track; see [`track_instant!`].
#[macro_export]
macro_rules! track_duration_end {
    ($category:expr, $track:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {{
        $crate::__no_text!($track, "track_duration_end!(category, track, name, \"key\" => value, …)");
        $crate::__virtual!(@named $track.virtual_name(), DurationEnd, None, $category, $name, $track.id() $(, $key => $value)*)
    }};
    ($($wrong:tt)*) => { $crate::__misused!("track_duration_end!(category, track, name, \"key\" => value, …)") };
}

/// Records the rest of the enclosing block as one complete duration of a track; see [`track_instant!`] and
/// [`duration!`]. The track has to be a static.
#[macro_export]
macro_rules! track_duration {
    ($category:expr, $track:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        let _trace_duration = {
            $crate::__no_text!($track, "track_duration!(category, track, name, \"key\" => value, …)");
            let site = $crate::__site!($category, $name $(, $key)*);
            if site.is_on() {
                Some($crate::TrackScope::begin(site, &$track, $crate::__values!($($value),*)))
            } else {
                None
            }
        };
    };
    ($($wrong:tt)*) => { $crate::__misused!("track_duration!(category, track, name, \"key\" => value, …)") };
}

/// What [`TraceFutureExt::trace`](crate::TraceFutureExt::trace) takes: `trace_future_args!(category, name,
/// flow_id, "key" => value, …)`; the flow's id and the arguments may be left out.
///
/// The begin of the operation and that of each poll have the arguments, at most 14. They are evaluated once,
/// immediately, and stored in the future: they must be numbers, or text that lives as long as the future.
#[macro_export]
macro_rules! trace_future_args {
    ($category:expr, $name:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::trace_future_args!($category, $name, $crate::Id::new() $(, $key => $value)*)
    };
    ($category:expr, $name:expr, $flow:expr $(, $key:expr => $value:expr)* $(,)?) => {
        $crate::TraceFutureArgs::new(
            {
                $crate::__no_text!($flow, "trace_future_args!(category, name, [flow], \"key\" => value, …)");
                [
                    $crate::__site!($category, $name $(, $key)*),
                    $crate::__site!($category, $name, $crate::trace_format::operation::PARENT_OPERATION $(, $key)*),
                    $crate::__site!($category, $name, $crate::trace_format::operation::POLL_OF $(, $key)*),
                    $crate::__site!($category, $name, "poll-state", "poll-count"),
                    $crate::__site!($category, $name),
                ]
            },
            $crate::Id::from($flow),
            $crate::__values!($($value),*),
        )
    };
    ($($wrong:tt)*) => { $crate::__misused!("trace_future_args!(category, name, [flow], \"key\" => value, …)") };
}
