//! What needs more than one module.

mod hostile;
mod listed;
mod oracles;
mod parsers;
mod stages;
