// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// moduleLine is the first line of this module's go.mod, and of no module inside it.
const moduleLine = "module fleetgate.io/fleetgate"

// Home is the ignored folder .fleetgate of this module, with programs and running clusters. It is
// found from the working folder upwards.
func Home() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if opensWith(filepath.Join(dir, "go.mod"), moduleLine) {
			return filepath.Join(dir, ".fleetgate"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the module: no folder above the working folder holds fleetgate's go.mod")
		}
	}
}

// Program returns the path of a program that `make kube` built, e.g. "kubectl".
func Program(name string) (string, error) {
	home, err := Home()
	if err != nil {
		return "", err
	}
	return program(binDir(home), name)
}

// Kubectl returns the path of kubectl for a command: the current one, or the one that
// FLEETGATE_KUBECTL names, with which the matrix runs suites with the oldest supported kubectl. get
// --raw always uses the current one: before 1.36 it drops the path of the server's URL
// (docs/how-to/access.md) and sends the request to the hub.
func Kubectl(arguments ...string) (string, error) {
	if name := os.Getenv("FLEETGATE_KUBECTL"); name != "" && !slices.Contains(arguments, "--raw") {
		return Program(name)
	}
	return Program("kubectl")
}

// ForGo is the environment in which suites run go. The race detector gives a suite cgo, with which go
// would compile all dependencies again that the Makefile has compiled without.
func ForGo() []string { return append(os.Environ(), "CGO_ENABLED=0") }

func binDir(home string) string { return filepath.Join(home, "bin") }

func program(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("program %s is missing (%w): run \"make kube\"", name, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is no program: run \"make kube\"", path)
	}
	return path, nil
}

func opensWith(path, line string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	return s.Scan() && strings.TrimSpace(s.Text()) == line
}
