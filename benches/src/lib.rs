//! Measurements against floors.
