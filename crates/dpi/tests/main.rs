//! What needs more than one module.
