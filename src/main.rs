//! The command line: parses, calls, exits.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use crownlabs::{Config, ConfigError, LostLease, Options};

/// One daemon that runs every control loop of a `CrownLabs` cluster.
#[derive(Parser)]
#[command(name = "crownlabs", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the control loops until SIGTERM.
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// The cluster; else KUBECONFIG, else that of the pod.
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
    },
    /// Print, as YAML, the objects that the loops would make for the custom resources in files.
    Plan {
        /// Files with custom resources in YAML or JSON, and folders of them; `-` is standard input.
        #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
        file: Vec<PathBuf>,
        /// The configuration file, or a ConfigMap manifest that contains it; else the defaults.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Print the custom resource definitions.
    Crd,
    /// Print, check or describe the configuration file.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write the man pages, one for each command.
    Man {
        /// The folder; it is made if there is none.
        folder: PathBuf,
    },
    /// Print the completion script of a shell.
    Completion {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the default file: every key, its default, and what it means.
    Default,
    /// Check a file; every fault is named with its line.
    Check {
        /// The file, or a ConfigMap manifest that contains it.
        file: PathBuf,
    },
    /// Print the JSON Schema of the file.
    Schema,
}

/// How long the end of the process waits for calls of the operating system that are under way.
const LAST_THREADS: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if error.is::<ConfigError>() {
                // A line a fault, each with its place, as compilers print them.
                eprintln!("{error}");
            } else {
                eprintln!("crownlabs: {error:#}");
            }
            let lost = error.is::<LostLease>();
            ExitCode::from(if lost { crownlabs::EXIT_LEASE_LOST } else { 1 })
        }
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run { config: file, kubeconfig } => {
            let config = Config::load(&file)?;
            let log_filter = crownlabs::start_logging(&config.log)?;
            let options = Options { config, config_file: file, kubeconfig, log_filter };
            let runtime = tokio::runtime::Builder::new_multi_thread()
                // The loops wait for the API server; handing work from thread to thread costs more
                // than a second thread would gain (`make bench`).
                .worker_threads(1)
                .enable_all()
                .build()
                .context("the runtime cannot start")?;
            let result = runtime.block_on(crownlabs::run(options));
            // A thread that waits for a name server, for example, does not delay the end.
            runtime.shutdown_timeout(LAST_THREADS);
            result
        }
        Command::Plan { file, config } => {
            let config = config.map_or_else(|| Ok(Config::default()), |file| Config::load_any(&file))?;
            let output = crownlabs::plan(&file, &config)?;
            for message in &output.messages {
                eprintln!("{message}");
            }
            print(&output.yaml()?)
        }
        Command::Crd => print(&crownlabs::crds()),
        Command::Config(ConfigCommand::Default) => print(&crownlabs::default_configuration()),
        Command::Config(ConfigCommand::Check { file }) => {
            Config::load_any(&file)?;
            print(&format!("{} is valid\n", file.display()))
        }
        Command::Config(ConfigCommand::Schema) => {
            print(&format!("{:#}\n", crownlabs::configuration_schema()))
        }
        Command::Man { folder } => write_man_pages(&folder)
            .with_context(|| format!("the man pages cannot be written into {}", folder.display())),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "crownlabs", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

fn write_man_pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Arguments::command().disable_help_subcommand(true), folder)
}

/// Prints. A closed pipe (`crownlabs crd | head`) ends the output and is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written")
        }
        _ => Ok(()),
    }
}
