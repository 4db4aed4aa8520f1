//! `millrace ctl`: ask a running UPF, and show the answer as a table or as JSON. What can be asked, and how it is shown, is said in [`api`].

mod follow;
mod watch;

use crate::exit::{Exit, Failure};
use crate::output;
use api::{CtlClient, CtlClientError, Dump, Mirror, Named, Question, Request, Visit};
use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `ctl`.
#[derive(clap::Args)]
pub struct Args {
    /// The UPF's control socket. Default: $MILLRACE_CTL__SOCKET, else /run/millrace/ctl.sock for root and
    /// $XDG_RUNTIME_DIR/millrace/ctl.sock for others.
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Ask(api::Command),
    /// Show rates of ports, workers, drops and N4, each second anew.
    Watch(watch::Args),
}

/// How long an answer is awaited.
const PATIENCE: Duration = Duration::from_secs(10);

impl From<CtlClientError> for Failure {
    fn from(error: CtlClientError) -> Self {
        let exit = match error {
            CtlClientError::Permission { .. } => Exit::Privilege,
            _ => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let from_environment = || std::env::var_os("MILLRACE_CTL__SOCKET").map(PathBuf::from);
    let socket = args.socket.clone().or_else(from_environment).unwrap_or_else(api::default_socket);
    let connect = || CtlClient::connect(&socket, PATIENCE);
    let json = args.json;
    let command = match &args.command {
        Command::Ask(command) => command,
        Command::Watch(args) => return watch::watch(connect, *args, json),
    };
    let mut command = command.clone();
    if let api::Command::Dump(dump) = &mut command {
        return ask_for_dump(&socket, dump, json);
    }
    let client = &mut connect()?;
    if let api::Command::N4(n4) = &command
        && let Some(query) = n4.follow()
    {
        return follow::follow(client, query, json);
    }
    let request = Request::from(command);
    if let Request::Mirror(end @ Mirror::Remove { id }) = &request
        && !json
    {
        // The answer is how the mirror ended; who ends one looks for those that are left.
        client.ask(end)?;
        output::text(&format!("Mirror {id} has ended.\n"))?;
        return Asking { client, json }.visit(&Mirror::List);
    }
    request.visit(Asking { client, json })
}

/// A million sessions take a while, and disks may be slow.
const DUMP_PATIENCE: Duration = Duration::from_mins(10);

/// The UPF may be in another directory.
fn ask_for_dump(socket: &Path, dump: &mut Dump, json: bool) -> Result<(), Failure> {
    let failed = |error| Failure::new(Exit::Usage, format!("{}: {error}", dump.file));
    let file = std::path::absolute(&dump.file).map_err(failed)?;
    dump.file = file
        .into_os_string()
        .into_string()
        .map_err(|file| Failure::new(Exit::Usage, format!("{}: the name is not UTF-8", file.display())))?;
    let client = &mut CtlClient::connect(socket, DUMP_PATIENCE)?;
    Asking { client, json }.visit(dump)
}

/// Asks, and shows the answer.
struct Asking<'a> {
    client: &'a mut CtlClient,
    json: bool,
}

impl Visit for Asking<'_> {
    type Output = Result<(), Failure>;

    fn visit<Q: Question>(self, question: &Q) -> Self::Output {
        let answer = self.client.ask(question)?;
        if self.json {
            output::json(&Named::new::<Q>(&answer))
        } else {
            output::text(&question.show(&answer).to_string())
        }
    }
}
