//! Directories for what tests write.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of the test's own, removed with it.
#[derive(Debug)]
pub struct Directory(pub PathBuf);

impl Directory {
    /// Makes one whose path has this in it, for whoever finds it after a test that was killed.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("millrace-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A test that fails has said why already.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
