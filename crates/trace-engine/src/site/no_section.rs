//! Other systems than Linux, where call sites have no section.

use crate::site::Site;

/// None.
pub(crate) fn sites() -> &'static [Site] {
    &[]
}
