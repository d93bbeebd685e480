//! Call sites whose names are found at run time.

use crate::session::lease::Lease;
use crate::session::wanted;
use crate::site::{MAX_ARGUMENTS, MAX_NAME_BYTES, Site, interned, known};

impl Site {
    /// Makes a call site whose texts are not known before the program runs. It stays for the life of the
    /// process, with its texts: for sites of which there are a limited number, such as those of a plugin or
    /// of another instrumentation, not for ids.
    ///
    /// # Panics
    /// If a text has more than 32 000 bytes, or if there are more than 15 arguments.
    #[must_use]
    pub fn leaked(category: &'static str, name: &'static str, arguments: &[&'static str]) -> &'static Self {
        interned::make(category, name, arguments, || {
            let lease = Lease::of_thread();
            move |category: &[u8]| wanted::wants(&lease, category)
        })
    }

    /// The call site with these texts: made when they are first asked for, and found afterwards, which takes
    /// no lock. It stays for the life of the process. None if there are too many already, a few thousand, if
    /// a text has more than 32 000 bytes, or if there are more than 15 arguments.
    #[must_use]
    pub fn of_texts(category: &str, name: &str, arguments: &[&'static str]) -> Option<&'static Self> {
        let mut texts = [category, name].into_iter().chain(arguments.iter().copied());
        let is_possible = texts.all(|text| text.len() <= MAX_NAME_BYTES) && arguments.len() <= MAX_ARGUMENTS;
        is_possible.then(|| known::find(category, name, arguments, Self::leaked))?
    }
}
