//! Mutations of the code that tests must detect, for tests that run whole programs: compiled in once and
//! selected by the environment, so that nothing is rebuilt for them.
//!
//! `tests/mutations.json` lists them as `switch`. Without the feature `mutants`, and in every build without
//! debug assertions, there are none.

/// Whether the mutation with this name is enabled: `TRACE_MUTANT` names one.
#[inline]
#[must_use]
pub fn is_on(name: &str) -> bool {
    #[cfg(all(feature = "mutants", debug_assertions))]
    return std::env::var_os("TRACE_MUTANT").is_some_and(|wanted| wanted == *name);
    #[cfg(not(all(feature = "mutants", debug_assertions)))]
    {
        let _ = name;
        false
    }
}
