//! Closures that are spawned in a scope.

use crate::parent::Parent;
use rayon::Scope;

/// Spawns closures in a [`Scope`] with names under which they are recorded.
///
/// ```
/// use rayon_fxt::ScopeExt;
///
/// let mut parts = [1, 2, 3];
/// rayon::scope(|scope| {
///     for part in &mut parts {
///         scope.spawn_traced("double", move |_| *part *= 2);
///     }
/// });
/// assert_eq!(parts, [2, 4, 6]);
/// ```
pub trait ScopeExt<'scope> {
    /// As [`Scope::spawn`].
    fn spawn_traced<F>(&self, name: &str, closure: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope;
}

impl<'scope> ScopeExt<'scope> for Scope<'scope> {
    fn spawn_traced<F>(&self, name: &str, closure: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        let parent = Parent::here(name);
        self.spawn(move |scope| parent.run(|| closure(scope)));
    }
}
