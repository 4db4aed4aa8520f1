//! SIGINT and SIGTERM as a flag that loops look at.

use crate::exit::{Exit, Failure};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first SIGINT or SIGTERM sets. The second one ends the process at once, for when a clean stop hangs.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let registered = signal_hook::flag::register_conditional_shutdown(
            signal,
            i32::from(Exit::Interrupted as u8),
            flag.clone(),
        )
        .and_then(|_| signal_hook::flag::register(signal, flag.clone()));
        registered.map_err(|error| Failure::new(Exit::Failed, format!("can't handle signals: {error}")))?;
    }
    Ok(flag)
}
