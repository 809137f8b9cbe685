// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts compares the charts with what they install and with what the documents
// say of them: flags, rights, values, metrics and versions. It runs Helm and no cluster;
// test/integration/charts installs them.
package charts
