//! Memory: how much there is, what Linux would give within what a control group (a container, a service) may take, and in which
//! pages.

use crate::files::{FileError, Files};
use crate::{clean, note};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Huge pages of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Bytes of each.
    pub bytes: u64,
    /// Reserved.
    pub total: u64,
    /// Not taken by anybody.
    pub free: u64,
    /// Free on each NUMA node that has any, by node.
    pub free_by_node: Vec<(usize, u64)>,
    /// Bytes of them that the process's control groups allow; `None`: any.
    pub allowed: Option<u64>,
}

impl HugePages {
    /// Bytes of them that can be had.
    pub fn room(&self) -> u64 {
        self.bytes.saturating_mul(self.free).min(self.allowed.unwrap_or(u64::MAX))
    }
}

/// What there is of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Bytes; `None`: the kernel doesn't say.
    pub total: Option<u64>,
    /// What can still be had; `None`: the kernel doesn't say.
    pub room: Option<Room>,
    /// By size.
    pub huge: Vec<HugePages>,
    /// When the kernel makes huge pages by itself: `always`, `madvise`, `never`.
    pub transparent: Option<String>,
    /// Where huge pages are mounted as files.
    pub mounts: Vec<String>,
}

impl Memory {
    /// Reads it below a root; `nodes` are the NUMA nodes.
    pub fn read(files: Files<'_>, nodes: &BTreeSet<usize>, problems: &mut Vec<FileError>) -> Self {
        let meminfo = note(problems, files.table("proc/meminfo")).unwrap_or_default();
        let groups = note(problems, files.table("proc/self/cgroup")).unwrap_or_default();
        let folder = "sys/kernel/mm/hugepages";
        let mut huge: Vec<HugePages> = Vec::new();
        for name in note(problems, files.names(folder)).into_iter().take(16) {
            let size =
                name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB")?.parse::<u64>().ok());
            let Some(kilobytes) = size else { continue };
            let mut pages = |path: String| note(problems, files.count(&path));
            let free_on = |node: usize| {
                let path = format!("sys/devices/system/node/node{node}/hugepages/{name}/free_hugepages");
                Some((node, pages(path)?)).filter(|(_, free)| *free > 0)
            };
            let free_by_node = nodes.iter().copied().filter_map(free_on).collect();
            let mut here = |file: &str| pages(format!("{folder}/{name}/{file}")).unwrap_or_default();
            let (total, free) = (here("nr_hugepages"), here("free_hugepages"));
            let allowed =
                groups.lines().take(GROUPS).filter_map(|line| allowed(files, line, kilobytes)).min();
            huge.push(HugePages {
                bytes: kilobytes.saturating_mul(1024),
                total,
                free,
                free_by_node,
                allowed,
            });
        }
        huge.sort_by_key(|pages| pages.bytes);
        let transparent = note(problems, files.text("sys/kernel/mm/transparent_hugepage/enabled"));
        let mounts = note(problems, files.table("proc/self/mounts")).unwrap_or_default();
        let hugetlbfs = |line: &str| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next()? == "hugetlbfs").then(|| clean(place))
        };
        Self {
            total: field(&meminfo, "MemTotal:").map(|kilobytes| kilobytes.saturating_mul(1024)),
            room: Room::read(files, problems),
            huge,
            // The one in force is in brackets.
            transparent: transparent
                .as_deref()
                .and_then(|text| Some(clean(text.split_once('[')?.1.split_once(']')?.0))),
            mounts: mounts.lines().filter_map(hugetlbfs).take(16).collect(),
        }
    }

    /// Huge pages of all sizes that can be had, in bytes.
    pub fn free_huge(&self) -> u64 {
        self.huge.iter().map(HugePages::room).fold(0, u64::saturating_add)
    }
}

/// Memory that can still be had.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Room {
    /// Ordinary pages, in bytes.
    pub ordinary: u64,
    /// What says so.
    pub says: String,
    /// Free huge pages of the usual size, in bytes.
    pub huge: u64,
}

impl Room {
    /// Of this machine; `None` if it doesn't say.
    pub fn here() -> Option<Self> {
        Self::read(Files(Path::new("/")), &mut Vec::new())
    }

    /// As the files below a root say.
    fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Option<Self> {
        let meminfo = note(problems, files.table("proc/meminfo"))?;
        let kilobytes = |name| field(&meminfo, name).map(|kilobytes| kilobytes.saturating_mul(1024));
        let huge = field(&meminfo, "HugePages_Free:").zip(kilobytes("Hugepagesize:"));
        let huge = huge.map_or(0, |(pages, bytes)| pages.saturating_mul(bytes));
        let free = Self {
            ordinary: kilobytes("MemAvailable:")?,
            says: "MemAvailable in /proc/meminfo".into(),
            huge,
        };
        let groups = note(problems, files.table("proc/self/cgroup")).unwrap_or_default();
        let limits = groups.lines().take(GROUPS).filter_map(|group| limit(files, group));
        Some(limits.fold(
            free,
            |room, (ordinary, says)| {
                if ordinary < room.ordinary { Self { ordinary, says, ..room } } else { room }
            },
        ))
    }
}

/// The number behind a name.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Lines of `/proc/self/cgroup`: one for each hierarchy.
const GROUPS: usize = 32;
/// Groups that a group can be in, one in another.
const DEEPEST: usize = 64;

/// Version 2 of control groups has one hierarchy, version 1 one for each controller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The group of a line of `/proc/self/cgroup` and those that it is in, if this controller's limits stand there. In a container's own namespace
/// the path may not be there; then its root is what counts.
fn groups(line: &str, controller: &str) -> Option<(Version, Vec<PathBuf>)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
    let (version, top) = if controllers.is_empty() {
        (Version::Two, "sys/fs/cgroup".to_owned())
    } else if controllers.split(',').any(|one| one == controller) {
        (Version::One, format!("sys/fs/cgroup/{controller}"))
    } else {
        return None;
    };
    let own = Path::new(&top).join(path);
    // A process outside of its namespace's root has a path with `..` in it.
    let groups = own.ancestors().take(DEEPEST).take_while(|group| group.starts_with(&top));
    Some((version, groups.map(Path::to_owned).collect()))
}

/// What stands in a file of a group.
fn file_of(files: Files<'_>, group: &Path, name: &str) -> Option<String> {
    files.table(group.join(name).to_str()?).ok().flatten()
}

/// Bytes of huge pages of a size that the groups of a line allow: the least.
fn allowed(files: Files<'_>, line: &str, kilobytes: u64) -> Option<u64> {
    let (version, groups) = groups(line, "hugetlb")?;
    let size = match kilobytes {
        0..1024 => format!("{kilobytes}KB"),
        1024..1_048_576 => format!("{}MB", kilobytes >> 10),
        _ => format!("{}GB", kilobytes >> 20),
    };
    let name = match version {
        Version::Two => format!("hugetlb.{size}.max"),
        Version::One => format!("hugetlb.{size}.limit_in_bytes"),
    };
    // "max" is no number.
    groups.iter().filter_map(|group| file_of(files, group, &name)?.trim().parse().ok()).min()
}

/// What the groups of a line leave of memory: the least, and where it stands.
fn limit(files: Files<'_>, line: &str) -> Option<(u64, String)> {
    let (version, groups) = groups(line, "memory")?;
    // Page cache goes when memory is wanted.
    let (most, taken, cache) = match version {
        Version::Two => ("memory.max", "memory.current", ["inactive_file ", "active_file "]),
        Version::One => {
            let cache = ["total_inactive_file ", "total_active_file "];
            ("memory.limit_in_bytes", "memory.usage_in_bytes", cache)
        }
    };
    let left = groups.iter().filter_map(|group| {
        let read = |name| file_of(files, group, name);
        let limit: u64 = read(most)?.trim().parse().ok()?;
        let taken: u64 = read(taken)?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let cache: u64 = cache.iter().filter_map(|name| field(&stat, name)).fold(0, u64::saturating_add);
        let left = limit.saturating_sub(taken.saturating_sub(cache));
        let place = Path::new("/").join(group).join(most);
        Some((left, format!("{} less what is taken", clean(&place.display().to_string()))))
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

    fn under(root: &Path) -> Option<Room> {
        Room::read(Files(root), &mut Vec::new())
    }

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        let root = std::env::temp_dir().join(format!("millrace-memory-{}", std::process::id()));
        assert_eq!(under(&root), None);
        write(&root, &[("proc/meminfo", MEMINFO)]);
        let room = under(&root).unwrap();
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
        let room = under(&root).unwrap();
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
        assert_eq!(under(&root).unwrap().ordinary, 100_000_000);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(Room::here().is_some_and(|room| room.ordinary > 0), "Linux says");
    }
}
