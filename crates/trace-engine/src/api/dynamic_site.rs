//! Call sites whose names are found at run time.

use crate::api::duration_scope::DurationScope;
use crate::api::id::Id;
use crate::record::arguments::{IntoValue, Values};
use crate::record::event::{Event, scope_word};
use crate::record::hot_path::write_event;
use crate::session::lease::Lease;
use crate::session::wanted;
use crate::site::{MAX_ARGUMENTS, MAX_NAME_BYTES, Site, interned, known};
use trace_format::event::{EventType, Scope};
use trace_format::refs::truncate;

impl Site {
    /// Makes a call site whose texts are not known before the program runs. It stays for the life of the
    /// process, with its texts: for sites of which there are a limited number, such as those of a plugin or
    /// of another instrumentation, not for ids.
    ///
    /// # Panics
    /// If a text has more than 32 000 bytes, or if there are more than 15 arguments.
    #[must_use]
    pub fn leaked(category: &'static str, name: &'static str, arguments: &[&'static str]) -> &'static Self {
        make(category, name, arguments, true)
    }

    /// As [`Site::leaked`], of texts that are constants of the program, such as those of call sites of
    /// another instrumentation: private recordings have them, too.
    ///
    /// # Panics
    /// If a text has more than 32 000 bytes, or if there are more than 15 arguments.
    #[must_use]
    pub fn leaked_constants(
        category: &'static str,
        name: &'static str,
        arguments: &[&'static str],
    ) -> &'static Self {
        make(category, name, arguments, false)
    }

    /// The call site with these texts: made when they are first asked for, and found afterwards, which takes
    /// no lock. It stays for the life of the process. None if there are too many already, a few thousand, if
    /// a text has more than 32 000 bytes, or if there are more than 15 arguments.
    #[must_use]
    pub fn of_texts(category: &str, name: &str, arguments: &[&'static str]) -> Option<&'static Self> {
        is_possible(category, name, arguments)
            .then(|| known::ALL.find(category, name, arguments, Self::leaked))?
    }

    /// As [`Site::of_texts`], for the few sites that stand for all for which there is no room: they have room
    /// of their own.
    #[must_use]
    pub fn of_others(category: &str, name: &str, arguments: &[&'static str]) -> Option<&'static Self> {
        is_possible(category, name, arguments)
            .then(|| known::OTHERS.find(category, name, arguments, Self::leaked))?
    }
}

fn make(
    category: &'static str,
    name: &'static str,
    arguments: &[&'static str],
    are_texts_of_run: bool,
) -> &'static Site {
    interned::make(category, name, arguments, are_texts_of_run, || {
        let lease = Lease::of_thread();
        move |category: &[u8]| wanted::wants(&lease, category)
    })
}

/// Whether a site can have these texts.
fn is_possible(category: &str, name: &str, arguments: &[&str]) -> bool {
    let mut texts = [category, name].into_iter().chain(arguments.iter().copied());
    texts.all(|text| text.len() <= MAX_NAME_BYTES) && arguments.len() <= MAX_ARGUMENTS
}

/// The name of sites for which there was no room.
const OTHERS: &str = "(too many names)";

/// A call site whose category and name are known only when the program runs, such as those of a plugin, of a
/// script or of a route. It has `N` arguments, whose names are constant.
///
/// `new` looks the texts up in a table or adds them to it; they stay there for the life of the process. So
/// keep a site that is used often, and pass values without bound, such as ids, as arguments. There is room
/// for a few thousand sites; events of further ones are recorded under the name `(too many names)`, and,
/// beyond some hundred categories, under a category of that name, too.
///
/// ```
/// # use trace_engine as trace_provider;
/// use trace_provider::{DynamicSite, Scope};
///
/// fn run(plugin: &str, job: u64) {
///     let site = DynamicSite::new("plugins", plugin, ["job"]);
///     let _duration = site.duration((job,));
///     DynamicSite::new("plugins", "ready", []).instant(Scope::Process, ());
/// }
/// # run("resize", 7);
/// ```
///
/// The macros take constant texts only: with a variable, the compiler says `attempt to use a non-constant
/// value in a constant` (E0435).
///
/// ```compile_fail,E0435
/// # use trace_engine as trace_provider;
/// fn run(plugin: &'static str) {
///     trace_provider::duration!("plugins", plugin);
/// }
/// ```
///
/// While its category is not recorded, a method costs one load, one branch and the evaluation of its values:
/// check [`DynamicSite::is_on`] before computing expensive values.
#[derive(Clone, Copy, Debug)]
pub struct DynamicSite<const N: usize>(Option<&'static Site>);

impl<const N: usize> DynamicSite<N> {
    /// The site with these texts. Texts are cut to 32 000 bytes.
    #[must_use]
    pub fn new(category: &str, name: &str, arguments: [&'static str; N]) -> Self {
        const { assert!(N <= MAX_ARGUMENTS, "an event has at most 15 arguments") };
        let [category, name] = [category, name].map(|text| truncate(text, MAX_NAME_BYTES));
        let arguments = arguments.map(|text| truncate(text, MAX_NAME_BYTES));
        let of_others = |category| Site::of_others(category, OTHERS, &arguments);
        let site = Site::of_texts(category, name, &arguments).or_else(|| of_others(category));
        Self(site.or_else(|| of_others(OTHERS)))
    }

    /// Whether its category is being recorded.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some_and(Site::is_on)
    }

    /// Records a moment, as [`instant!`](crate::instant).
    #[inline]
    pub fn instant(&self, scope: Scope, values: impl ArgumentTuple<N>) {
        self.write(EventType::Instant, scope_word(scope), values);
    }

    /// Records samples, one for each value, as [`counter!`](crate::counter).
    #[inline]
    pub fn counter(&self, id: impl Into<Id>, values: impl ArgumentTuple<N>) {
        self.write(EventType::Counter, Some(id.into().0), values);
    }

    /// Records a duration until the returned value is dropped, as [`duration!`](crate::duration).
    #[inline]
    pub fn duration<T: ArgumentTuple<N>>(&self, values: T) -> DurationScope<T::Values> {
        let on = self.0.map(|site| (site, site.state())).filter(|(_, state)| state.is_on());
        match on {
            Some((site, state)) => DurationScope::begin(site, state, values.into_values()),
            None => DurationScope::off(),
        }
    }

    /// Begins a duration on this thread, as [`duration_begin!`](crate::duration_begin).
    #[inline]
    pub fn duration_begin(&self, values: impl ArgumentTuple<N>) {
        self.write(EventType::DurationBegin, None, values);
    }

    /// Ends a duration on this thread, as [`duration_end!`](crate::duration_end).
    #[inline]
    pub fn duration_end(&self, values: impl ArgumentTuple<N>) {
        self.write(EventType::DurationEnd, None, values);
    }

    #[inline]
    fn write(&self, event_type: EventType, extra: Option<u64>, values: impl ArgumentTuple<N>) {
        if let Some(site) = self.0.filter(|site| site.is_on()) {
            write_event(site, Event { event_type, start: None, extra }, &values.into_values());
        }
    }
}

/// The values of `N` arguments: `()`, `(1_u64,)`, `("text", 2.5)`, up to 15 of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of {N} arguments",
    label = "expected {N} values, in a tuple: `()`, `(value,)`, `(value, value)`",
    note = "each has to be a type of arguments: see `IntoValue`"
)]
pub trait ArgumentTuple<const N: usize>: sealed::Sealed {
    /// The values in the record.
    #[doc(hidden)]
    type Values: Values;
    /// Converts them.
    #[doc(hidden)]
    fn into_values(self) -> Self::Values;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! argument_tuple {
    ($count:literal: $($value:ident $number:tt),*) => {
        impl<$($value: IntoValue),*> sealed::Sealed for ($($value,)*) {}
        impl<$($value: IntoValue),*> ArgumentTuple<$count> for ($($value,)*) {
            type Values = argument_tuple!(@type $($value)*);

            #[inline]
            fn into_values(self) -> Self::Values {
                crate::__plain_values!($(self.$number),*)
            }
        }
    };
    (@type) => { () };
    (@type $value:ident $($rest:ident)*) => { ($value::Value, argument_tuple!(@type $($rest)*)) };
}

argument_tuple!(0:);
argument_tuple!(1: A 0);
argument_tuple!(2: A 0, B 1);
argument_tuple!(3: A 0, B 1, C 2);
argument_tuple!(4: A 0, B 1, C 2, D 3);
argument_tuple!(5: A 0, B 1, C 2, D 3, E 4);
argument_tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);
argument_tuple!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
argument_tuple!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
argument_tuple!(9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
argument_tuple!(10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
argument_tuple!(11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
argument_tuple!(12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
argument_tuple!(13: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
argument_tuple!(14: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
argument_tuple!(15: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
