// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfigs that strangers wrote.
//
// A kubeconfig is a program: it can name a command to run, files to read and servers to
// call. The gateway reads those that users put into Secrets, and an agent those that come
// with a registration, so what they may say is listed here, and everything else is
// refused: commands, plug-ins and paths never take effect on the machine that reads them.
//
// [Parse] takes the current context alone. It opens no file and no connection, and its
// errors name the field and the remedy, never a value that could be a secret.
package kubeconfig
