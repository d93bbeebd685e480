//! The harness of the multi-process scenarios.
