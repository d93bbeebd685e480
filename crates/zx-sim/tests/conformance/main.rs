//! What every object promises, between two real processes.

mod channel;
mod child;
mod fifo;
mod listener;
mod peers;
mod process;
mod runtime_dir;
mod skip;
mod socket;
mod ticks;
mod vmo;
mod wait;
