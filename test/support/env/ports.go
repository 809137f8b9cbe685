// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are below the range for outgoing connections (32768 and up on Linux). A port in that range
// can be taken by a client while its server restarts, or a retrying client can connect to itself.
// Those below 20100 are for the in-memory clusters of Cluster API.
const (
	firstPort = 20100
	lastPort  = 29999
)

// FreePorts returns n ports on 127.0.0.1 for servers of this process, or of the programs that it
// starts. No server listens on them now, and no outgoing connection will use them. No other process
// gets them while this one runs, so that a server can end and start again on its port.
func FreePorts(n int) ([]int, error) {
	dir, err := portsDir()
	if err != nil {
		return nil, fmt.Errorf("finding free ports: %w", err)
	}
	// One process chooses at a time, so that none mistakes a lock that another one tries for one that
	// it holds.
	choosing, err := os.OpenFile(filepath.Join(dir, "choosing"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("finding free ports: %w", err)
	}
	defer choosing.Close()
	if err := syscall.Flock(int(choosing.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("finding free ports: %w", err)
	}
	var ports []int
	for range lastPort - firstPort {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		free, err := claim(dir, port)
		if err != nil {
			return nil, fmt.Errorf("finding free ports: %w", err)
		}
		if free {
			ports = append(ports, port)
		}
	}
	return nil, errors.New("finding free ports: too few are free")
}

// HoldPorts keeps ports that an earlier process found, for example the ports of a stored cluster, from
// being found by others while this process runs.
func HoldPorts(ports ...int) error {
	dir, err := portsDir()
	if err != nil {
		return fmt.Errorf("holding ports: %w", err)
	}
	for _, port := range ports {
		lock, err := openLock(dir, port)
		if err == nil {
			err = syscall.Flock(lock, syscall.LOCK_SH)
		}
		if err != nil {
			return fmt.Errorf("holding ports: %w", err)
		}
	}
	return nil
}

func portsDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("fleetgate-ports-%d", os.Getuid()))
	return dir, os.MkdirAll(dir, 0o700)
}

// claim holds the port if nobody holds it and no server listens on it.
func claim(dir string, port int) (bool, error) {
	lock, err := openLock(dir, port)
	if err != nil {
		return false, err
	}
	if syscall.Flock(lock, syscall.LOCK_EX|syscall.LOCK_NB) != nil || !isFree(port) {
		return false, syscall.Close(lock)
	}
	return true, syscall.Flock(lock, syscall.LOCK_SH)
}

// openLock opens the lock file of a port. The descriptor stays open as long as the process runs, and no
// program inherits it. The empty file stays, because removing it would let two processes lock the port.
func openLock(dir string, port int) (int, error) {
	return syscall.Open(filepath.Join(dir, strconv.Itoa(port)), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback("127.0.0.1", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
