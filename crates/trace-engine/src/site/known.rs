//! Call sites that are found by their texts: each is made once, and found afterwards without a lock.
//!
//! No thread ever waits for another one here: a child that is forked while another thread makes a site would
//! wait for that thread for ever.
//!
//! Invariant **K1**: a place of a table is empty, or has the address of a leaked entry that does not change.
#![allow(unsafe_code)]

use crate::site::Site;
use crate::sync::{AtomicPtr, Ordering};
use core::ptr;

/// Places that are tried for one site.
const TRIES: usize = 16;

/// A site with the texts that it was made of.
struct Known {
    category: &'static str,
    name: &'static str,
    arguments: &'static [&'static str],
    site: &'static Site,
}

/// A table of so many places, a power of two.
pub(crate) struct Table<const PLACES: usize>([AtomicPtr<Known>; PLACES]);

/// Sites of any texts.
pub(crate) static ALL: Table<4096> = Table::new();
/// Those that stand for all for which there is no room there.
pub(crate) static OTHERS: Table<512> = Table::new();

impl<const PLACES: usize> Table<PLACES> {
    const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; PLACES])
    }

    /// The site with these texts. `make` makes it, of copies that stay, if there is none; where two threads
    /// do so at once, one has made it in vain. None if there is no room for another.
    pub(crate) fn find(
        &self,
        category: &str,
        name: &str,
        arguments: &[&'static str],
        make: impl Fn(&'static str, &'static str, &'static [&'static str]) -> &'static Site,
    ) -> Option<&'static Site> {
        let start = hash(category, name);
        (0..TRIES).find_map(|number| {
            let place = &self.0[(start + number) % PLACES];
            // Acquire: pairs with the release below.
            let mut found = place.load(Ordering::Acquire);
            if found.is_null() {
                let stays = |text: &str| -> &'static str { Box::leak(text.into()) };
                let (category, name) = (stays(category), stays(name));
                let arguments: &'static [&'static str] = Box::leak(arguments.into());
                let site = make(category, name, arguments);
                let made: *mut Known = Box::leak(Box::new(Known { category, name, arguments, site }));
                let null = ptr::null_mut();
                found = match place.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => made,
                    Err(found) => found,
                };
            }
            // SAFETY: not null any more, so it is a leaked entry (K1).
            let known = unsafe { &*found };
            let is_same = known.category == category && known.name == name && known.arguments == arguments;
            is_same.then_some(known.site)
        })
    }
}

/// FNV-1a of both texts.
fn hash(category: &str, name: &str) -> usize {
    let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let of_category = category.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, byte);
    let hash = name.as_bytes().iter().fold(byte(of_category, &0xff), byte);
    (hash ^ hash >> 32) as usize
}
