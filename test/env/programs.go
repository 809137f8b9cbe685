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

// moduleLine opens the go.mod of this module, and of no module inside it.
const moduleLine = "module fleetgate.io/fleetgate"

// Home is the ignored folder of this module, .fleetgate, in which programs and running
// clusters live. It is found from the working folder upwards.
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

// Program is the path of a program that `make kube` built, e.g. "kubectl".
func Program(name string) (string, error) {
	home, err := Home()
	if err != nil {
		return "", err
	}
	return program(binDir(home), name)
}

// Kubectl is the path of kubectl for a command: today's, or the program beside it that
// FLEETGATE_KUBECTL names, which is how the matrix runs suites with the oldest that users have.
// get --raw is always today's: before 1.36 it drops the path of the server's URL, as
// docs/access.md says, and asks the hub.
func Kubectl(arguments ...string) (string, error) {
	if name := os.Getenv("FLEETGATE_KUBECTL"); name != "" && !slices.Contains(arguments, "--raw") {
		return Program(name)
	}
	return Program("kubectl")
}

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
