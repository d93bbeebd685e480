//! Enums whose unknown values are decode errors.

/// Declares a strict enum with `value()` and `from_value()`; the list of names and numbers is written once.
macro_rules! strict_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $value:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = $value,)+
        }

        impl $name {
            /// Every value, in ascending order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The number on the wire.
            #[must_use]
            pub const fn value(self) -> u8 {
                self as u8
            }

            /// The value with this number on the wire.
            ///
            /// # Errors
            ///
            /// [`ProtocolError::InvalidValue`](crate::ProtocolError::InvalidValue) for any other number.
            pub fn from_value(value: u8) -> Result<Self, $crate::ProtocolError> {
                match value {
                    $($value => Ok($name::$variant),)+
                    found => Err($crate::ProtocolError::InvalidValue {
                        field: stringify!($name),
                        expected: concat!("one of", $(" ", stringify!($variant), "=", $value),+),
                        found: u64::from(found),
                    }),
                }
            }
        }
    };
}

pub(crate) use strict_enum;
