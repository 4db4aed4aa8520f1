//! How much memory there is: what Linux would give, within what a control group (a container, a service) may take.

use std::path::Path;

/// Memory that can still be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// Ordinary pages, in bytes.
    pub ordinary: u64,
    /// What says so.
    pub says: String,
    /// Free huge pages, in bytes.
    pub huge: u64,
}

impl Room {
    /// Of this machine; `None` if it doesn't say.
    pub fn here() -> Option<Self> {
        Self::under(Path::new("/"))
    }

    /// As the files under this root say.
    fn under(root: &Path) -> Option<Self> {
        let meminfo = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
        let kilobytes = |name| field(&meminfo, name).map(|kilobytes| kilobytes * 1024);
        let huge = field(&meminfo, "HugePages_Free:").zip(kilobytes("Hugepagesize:"));
        let huge = huge.map_or(0, |(pages, bytes)| pages.saturating_mul(bytes));
        let free = Self {
            ordinary: kilobytes("MemAvailable:")?,
            says: "MemAvailable in /proc/meminfo".into(),
            huge,
        };
        let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        Some(groups.lines().filter_map(|group| limit(root, group)).fold(free, |room, (ordinary, says)| {
            if ordinary < room.ordinary { Self { ordinary, says, ..room } } else { room }
        }))
    }
}

/// The number behind a name.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the group of a line of `/proc/self/cgroup`, and the groups that it is in, leave: the least, and where it stands. In a container's
/// own namespace the path may not be there; then its root is what counts.
fn limit(root: &Path, line: &str) -> Option<(u64, String)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
    // Version 2 has one hierarchy, version 1 one for memory. Page cache goes when memory is wanted.
    let (top, files) = if controllers.is_empty() {
        ("sys/fs/cgroup", ("memory.max", "memory.current", ["inactive_file ", "active_file "]))
    } else if controllers.split(',').any(|controller| controller == "memory") {
        let cache = ["total_inactive_file ", "total_active_file "];
        ("sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", cache))
    } else {
        return None;
    };
    let (most, taken, cache) = files;
    let top = root.join(top);
    let own = top.join(path);
    let left = own.ancestors().take_while(|group| group.starts_with(&top)).filter_map(|group| {
        let read = |name| std::fs::read_to_string(group.join(name)).ok();
        // "max" is no number.
        let most: u64 = read(most)?.trim().parse().ok()?;
        let taken: u64 = read(taken)?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let cache: u64 = cache.iter().filter_map(|name| field(&stat, name)).sum();
        let left = most.saturating_sub(taken.saturating_sub(cache));
        Some((left, format!("{} less what is taken", group.join(files.0).display())))
    });
    left.min_by_key(|(left, _)| *left)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MEMINFO: &str =
        "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nHugePages_Free: 16\nHugepagesize: 2048 kB\n";

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        let root = std::env::temp_dir().join(format!("millrace-memory-{}", std::process::id()));
        assert_eq!(Room::under(&root), None);
        write(&root, &[("proc/meminfo", MEMINFO)]);
        let room = Room::under(&root).unwrap();
        assert_eq!((room.ordinary, room.huge), (4_096_000_000, 32 << 20));
        // Version 2: the service has no limit, the slice that it is in has 1 GB, of which 300 MB are taken, 100 MB of these by files.
        write(
            &root,
            &[
                ("proc/self/cgroup", "0::/system.slice/upf.service\n"),
                ("sys/fs/cgroup/system.slice/upf.service/memory.max", "max\n"),
                ("sys/fs/cgroup/system.slice/memory.max", "1000000000\n"),
                ("sys/fs/cgroup/system.slice/memory.current", "300000000\n"),
                (
                    "sys/fs/cgroup/system.slice/memory.stat",
                    "anon 5\ninactive_file 60000000\nactive_file 40000000\n",
                ),
            ],
        );
        let room = Room::under(&root).unwrap();
        assert_eq!(room.ordinary, 800_000_000);
        assert!(room.says.ends_with("system.slice/memory.max less what is taken"), "{}", room.says);
        // Version 1, in a container that sees its own group as the root.
        write(
            &root,
            &[
                ("proc/self/cgroup", "5:cpu:/docker/7\n4:memory:/docker/7\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000000"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "600000000"),
                ("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 200000000\n"),
            ],
        );
        assert_eq!(Room::under(&root).unwrap().ordinary, 100_000_000);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(Room::here().is_some_and(|room| room.ordinary > 0), "Linux says");
    }
}
