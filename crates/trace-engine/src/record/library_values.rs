//! Types of the standard library as arguments.

use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{IntoValue, Text, Uint64, Value, sealed};
use crate::record::rendering::{Rendered, debug, display};
use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_format::argument::ArgumentType;

/// A value, or null.
#[derive(Clone, Copy, Debug)]
pub struct Maybe<V>(Option<V>);

impl<V> sealed::Sealed for Maybe<V> {}

impl<V: Value> Value for Maybe<V> {
    #[inline(always)]
    fn argument_type(&self) -> ArgumentType {
        self.0.as_ref().map_or(ArgumentType::Null, Value::argument_type)
    }
    #[inline(always)]
    fn words(&self) -> usize {
        self.0.as_ref().map_or(0, Value::words)
    }
    #[inline(always)]
    fn upper(&self) -> u32 {
        self.0.as_ref().map_or(0, Value::upper)
    }
    #[inline(always)]
    fn write(&self, record: &mut RecordWriter) {
        if let Some(value) = &self.0 {
            value.write(record);
        }
    }
    #[inline]
    fn is_private(&self) -> bool {
        self.0.as_ref().is_some_and(Value::is_private)
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    type Value = Maybe<T::Value>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Maybe(self.map(T::into_value))
    }
}

/// A character, as text.
#[derive(Clone, Copy, Debug)]
pub struct Character {
    bytes: [u8; 4],
    length: usize,
}

impl AsRef<str> for Character {
    fn as_ref(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl<'a, T> IntoValue for &'a Option<T>
where
    &'a T: IntoValue,
{
    type Value = Maybe<<&'a T as IntoValue>::Value>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Maybe(self.as_ref().map(<&T>::into_value))
    }
}

impl IntoValue for char {
    type Value = Text<Character>;
    #[inline]
    fn into_value(self) -> Self::Value {
        let mut bytes = [0; 4];
        let length = self.encode_utf8(&mut bytes).len();
        Text(Character { bytes, length })
    }
}

/// In nanoseconds; more than 584 years stay at the largest number.
impl IntoValue for Duration {
    type Value = Uint64;
    #[inline(always)]
    fn into_value(self) -> Uint64 {
        Uint64(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl<'a> IntoValue for Cow<'a, str> {
    type Value = Text<Self>;
    #[inline]
    fn into_value(self) -> Self::Value {
        Text(self)
    }
}

impl<'a> IntoValue for &'a Cow<'_, str> {
    type Value = Text<&'a str>;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        Text(&**self)
    }
}

macro_rules! lossy_text {
    ($($type:ty),+) => { $(
        impl<'a> IntoValue for &'a $type {
            type Value = Text<Cow<'a, str>>;
            #[inline]
            fn into_value(self) -> Self::Value {
                Text(AsRef::<OsStr>::as_ref(self).to_string_lossy())
            }
        }
    )+ };
}

lossy_text!(Path, PathBuf, OsStr);

impl<'a> IntoValue for &'a Vec<u8> {
    type Value = <&'a [u8] as IntoValue>::Value;
    #[inline(always)]
    fn into_value(self) -> Self::Value {
        self.as_slice().into_value()
    }
}

macro_rules! rendered {
    ($show:ident: $($type:ty),+) => { $(
        impl IntoValue for $type {
            type Value = Rendered;
            #[inline]
            fn into_value(self) -> Rendered {
                $show(&self)
            }
        }
    )+ };
}

rendered!(display: u128, i128, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6);
rendered!(display: &(dyn Error + 'static), &(dyn Error + Send + Sync + 'static), &io::Error);
rendered!(display: &Box<dyn Error>, &Box<dyn Error + Send + Sync>);
rendered!(debug: &[i8], &[i16], &[i32], &[i64], &[isize], &[u16], &[u32], &[u64], &[usize], &[u128]);
rendered!(debug: &[f32], &[f64], &[bool], &[char], &[&str], &[String]);
