//! Converts Fuchsia trace archives to other formats.
