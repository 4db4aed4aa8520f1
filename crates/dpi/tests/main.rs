//! What needs more than one module.

mod evidence;
mod hostile;
mod listed;
mod oracles;
mod parsers;
mod stages;
