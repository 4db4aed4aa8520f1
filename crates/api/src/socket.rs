//! Where the control socket is, and whether it may be there.
//!
//! For users without `$XDG_RUNTIME_DIR` it is in `/tmp/millrace-UID`. Everyone may make a directory in `/tmp`, also one with our name: who owns it can put a socket of his own there, and take ours away. So it is
//! used only if it is a directory of our own that nobody else may enter. Other directories are what whoever configures them says.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the control socket is unless the configuration says otherwise: `/run/millrace/ctl.sock` for root, else
/// `$XDG_RUNTIME_DIR/millrace/ctl.sock`, else `/tmp/millrace-UID/ctl.sock`.
pub fn default_socket() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return "/run/millrace/ctl.sock".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("millrace/ctl.sock"),
        None => fallback(user.as_raw()).join("ctl.sock"),
    }
}

/// The directory for a user without `$XDG_RUNTIME_DIR`.
fn fallback(user: u32) -> PathBuf {
    format!("/tmp/millrace-{user}").into()
}

/// Why a socket's directory is not to be trusted; `None`: it is, or does not exist yet.
pub fn distrust(socket: &Path) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let directory = fallback(user);
    (socket.parent() == Some(&directory)).then(|| judge(&directory, user)).flatten()
}

fn judge(directory: &Path, user: u32) -> Option<String> {
    // Not what a link leads to: whose link it is says nothing.
    let metadata = directory.symlink_metadata().ok()?;
    let shown = directory.display();
    if !metadata.is_dir() {
        return Some(format!("{shown} is not a directory"));
    }
    if metadata.uid() != user {
        return Some(format!("{shown} belongs to another user ({})", metadata.uid()));
    }
    let mode = metadata.mode() & 0o777;
    (mode != 0o700).then(|| format!("others may enter {shown} (mode {mode:04o}); chmod 0700 it"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    #[test]
    fn only_a_closed_directory_of_our_own_is_trusted() {
        let user = rustix::process::geteuid().as_raw();
        let directory = std::env::temp_dir().join(format!("millrace-trust-{}", std::process::id()));
        assert_eq!(judge(&directory, user), None, "it is to be made");
        std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        assert_eq!(judge(&directory, user), None);
        assert!(judge(&directory, user + 1).unwrap().contains("belongs to another user"));
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(judge(&directory, user).unwrap().contains("(mode 0755); chmod 0700"));
        let link = directory.with_extension("link");
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(judge(&link, user).unwrap().ends_with("is not a directory"));
        std::fs::remove_file(link).unwrap();
        std::fs::remove_dir(directory).unwrap();
        // Others are not our business.
        assert_eq!(distrust(Path::new("/run/millrace/ctl.sock")), None);
    }
}
