//! What instrumented code uses: macros, the guards and futures behind them, tracks and ids.

pub(crate) mod async_scope;
pub(crate) mod duration_scope;
pub(crate) mod future;
pub(crate) mod id;
mod macros;
pub(crate) mod track;
