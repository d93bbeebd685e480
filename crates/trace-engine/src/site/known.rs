//! Call sites that are found by their texts: each is made once, and found afterwards without a lock.

use crate::site::Site;
use std::sync::OnceLock;

/// Places of the table, a power of two.
const PLACES: usize = 4096;
/// Places that are tried for one site.
const TRIES: usize = 16;

/// A site with the texts that it was made of.
struct Known {
    category: &'static str,
    name: &'static str,
    arguments: &'static [&'static str],
    site: &'static Site,
}

static TABLE: [OnceLock<Known>; PLACES] = [const { OnceLock::new() }; PLACES];

/// The site with these texts. `make` makes it, of copies that stay, if there is none. None if there is no
/// room for another.
pub(crate) fn find(
    category: &str,
    name: &str,
    arguments: &[&'static str],
    make: impl Fn(&'static str, &'static str, &'static [&'static str]) -> &'static Site,
) -> Option<&'static Site> {
    let start = hash(category, name);
    (0..TRIES).find_map(|number| {
        let place = &TABLE[(start + number) % PLACES];
        let known = place.get_or_init(|| {
            let stays = |text: &str| -> &'static str { Box::leak(text.into()) };
            let (category, name) = (stays(category), stays(name));
            let arguments: &'static [&'static str] = Box::leak(arguments.into());
            Known { category, name, arguments, site: make(category, name, arguments) }
        });
        let is_same = known.category == category && known.name == name && known.arguments == arguments;
        is_same.then_some(known.site)
    })
}

/// FNV-1a of both texts.
fn hash(category: &str, name: &str) -> usize {
    let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let of_category = category.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, byte);
    let hash = name.as_bytes().iter().fold(byte(of_category, &0xff), byte);
    (hash ^ hash >> 32) as usize
}
