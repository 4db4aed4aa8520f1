//! What needs more than one module.

mod hostile;
mod oracles;
mod parsers;
mod stages;
