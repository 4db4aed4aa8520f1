//! What needs more than one module.

mod oracles;
mod parsers;
mod stages;
