//! A tool that is a program here: the inputs as JSON on its standard input, the outputs as JSON on its standard output.
//!
//! INVARIANT: the program and its arguments are the operator's, never a model's; it ends with the call, and so does
//! whatever it started.

use super::group::Program;
use crate::credentials::World;
use crate::fields::Fields;
use crate::tool::{Call, Hand, OUTPUT_BYTES_MAX, ToolError};
use crate::{ConfigurationError, Pending};
use json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A program that answers.
pub(crate) struct Command {
    program: Program,
    /// The variable that a credential is put in.
    credential: Option<String>,
}

/// Reads how a program is started: `command`, `env` and, for the credential, `credential_env`.
pub(crate) fn program(fields: &Fields<'_>, world: &World<'_>) -> Result<(Program, Option<String>), ConfigurationError> {
    let command = fields.texts("command")?;
    let Some((path, arguments)) = command.split_first() else {
        return Err(fields.wrong("command", "`command` is a list: the program, then its arguments"));
    };
    let mut variables = std::collections::BTreeMap::new();
    for (name, value, at) in fields.entries("env")? {
        let Some(value) = value.as_str() else {
            return Err(ConfigurationError::new(&at, "a text is expected here"));
        };
        variables.insert(name.to_owned(), value.to_owned());
    }
    let folder = world.folder.join(fields.text("folder")?.unwrap_or("."));
    let program = Program { path: path.clone(), arguments: arguments.to_vec(), variables, folder };
    Ok((program, fields.text("credential_env")?.map(str::to_owned)))
}

impl Command {
    pub(crate) fn read(fields: &Fields<'_>, world: &World<'_>) -> Result<Self, ConfigurationError> {
        let (program, credential) = program(fields, world)?;
        Ok(Self { program, credential })
    }

    async fn run(&self, call: Call<'_>) -> Result<Value, ToolError> {
        let mut variables = vec![("RIALTO_CALL_ID", call.id)];
        if let (Some(name), Some(secret)) = (&self.credential, call.credential) {
            variables.push((name, secret.expose()));
        }
        let unavailable = |_| ToolError::Unavailable("the program cannot be started".to_owned());
        let mut group = self.program.start(&variables).map_err(unavailable)?;
        let (input, output) = (group.child.stdin.take(), group.child.stdout.take());
        let (Some(mut input), Some(output)) = (input, output) else {
            return Err(ToolError::Unavailable("the program has no standard input and output".to_owned()));
        };
        let bytes = call.inputs.to_string().into_bytes();
        let writing = async move {
            // A program need not read what it does not want to know.
            let _ = input.write_all(&bytes).await;
        };
        let mut said = Vec::new();
        let mut bounded = output.take(OUTPUT_BYTES_MAX as u64 + 1);
        let ((), read) = tokio::join!(writing, bounded.read_to_end(&mut said));
        read.map_err(|_| ToolError::Lost("the program could not be listened to".to_owned()))?;
        if said.len() > OUTPUT_BYTES_MAX {
            return Err(ToolError::Protocol("the program said more than is taken".to_owned()));
        }
        let status = group.child.wait().await;
        let status = status.map_err(|_| ToolError::Lost("nobody knows how the program ended".to_owned()))?;
        let value: Result<Value, _> = serde_json::from_slice(&said);
        match (status.success(), value) {
            (true, Ok(value)) => Ok(value),
            (true, Err(_)) => Err(ToolError::Protocol("the program said something that is no JSON".to_owned())),
            (false, Ok(value)) => match value.get("error").and_then(Value::as_str) {
                Some(words) => Err(ToolError::failed(words)),
                None => Err(ToolError::failed("the program failed")),
            },
            (false, Err(_)) => Err(ToolError::failed("the program failed")),
        }
    }
}

impl Hand for Command {
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Value, ToolError>> {
        Box::pin(self.run(call))
    }
}
