//! A second node, which speaks TLS with a certificate that nobody has vouched for: a host that others do not believe, and
//! a listener for those who speak something older.

use super::bytes::{Names, bytes};
use super::case::{Secure, Tls};
use super::stage::SLACK;
use crate::crash::{Program, start};
use anyhow::{Context, Result, ensure};
use json::Value;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A node that speaks TLS; it ends with this.
pub(crate) struct Listener {
    child: Child,
    authority: String,
    _folder: tempfile::TempDir,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Listener {
    pub(crate) fn start(program: &Program, secure: &Secure) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [chain, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        let mut wanted = rcgen::CertificateParams::new(secure.names.clone())?;
        if secure.expired {
            (wanted.not_before, wanted.not_after) =
                (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
        }
        let secret = rcgen::KeyPair::generate()?;
        fs::write(&chain, wanted.self_signed(&secret)?.pem())?;
        fs::write(&key, secret.serialize_pem())?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        let mut child = Command::new(program.binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--log", "warn", "--data"])
            .arg(folder.path().join("data"))
            .arg("--certificate")
            .arg(&chain)
            .arg("--certificate-key")
            .arg(&key)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.path().join("log"))?)
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the node has no output")?).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).with_context(|| {
            format!("it does not start: {}", fs::read_to_string(folder.path().join("log")).unwrap_or_default())
        })?;
        let address = ready.get("address").and_then(Value::as_str).context("the node tells no address")?;
        let authority = address.trim_start_matches("https://").trim_end_matches('/').to_owned();
        Ok(Self { child, authority, _folder: folder })
    }

    /// What others dial.
    pub(crate) fn port(&self) -> &str {
        self.authority.rsplit(':').next().unwrap_or_default()
    }

    /// Sends bytes, and looks at what comes back until the connection is closed; the process must live.
    pub(crate) fn hears(&mut self, tls: &Tls, names: &Names) -> Result<()> {
        let within = Duration::from_millis(tls.within_ms * SLACK);
        let begun = start();
        let mut stream = TcpStream::connect(&self.authority)?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(&bytes(&tls.bytes, names)?)?;
        let (mut said, mut block, mut closed) = (Vec::new(), [0; 4 * 1024], false);
        while !closed && (tls.closed || said.is_empty()) && begun.elapsed() < within {
            match stream.read(&mut block) {
                Ok(0) => closed = true,
                Ok(count) => said.extend_from_slice(block.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => closed = error.kind() == ErrorKind::ConnectionReset,
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
        let hex: String = said.iter().map(|byte| format!("{byte:02x}")).collect();
        ensure!(hex.starts_with(&tls.begins), "it says {hex}");
        ensure!(
            closed || !tls.closed,
            "the connection is open after {} ms; it said {hex}",
            begun.elapsed().as_millis()
        );
        ensure!(!String::from_utf8_lossy(&said).contains("HTTP/"), "it speaks without TLS: {hex}");
        ensure!(self.child.try_wait()?.is_none(), "the process has ended");
        Ok(())
    }
}
