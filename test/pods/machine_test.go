// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const architecture = runtime.GOARCH

// The hub's node is on the machine itself, together with all control planes; those of members
// are on networks of their own, behind wires. Pods have a network for each node.
const (
	hubAddress    = "10.89.0.1"
	memberAddress = "10.89.0.2"
	hubPods       = "10.244.0.0/24"
	memberPods    = "10.245.0.0/24"
	services      = "10.96.0.0/16"
)

// wire is a connection to the network of one node.
type wire struct {
	// name names the network, and near and far the ends.
	name, near, far string
	// gateway is the address of the near end, and address that of the node.
	gateway, address string
	// pods is the Pod network of the node.
	pods string
}

// makeNetwork lays the wire of the first member, with routes that all need.
func makeNetwork(ctx context.Context) (string, error) {
	network, err := wire{name: "member", near: "hub0", far: "member0", gateway: hubAddress, address: memberAddress, pods: memberPods}.lay(ctx)
	if err != nil {
		return "", err
	}
	// kube-proxy changes the destination of what is sent to a Service, after a route was found.
	return network, ip(ctx, "route add "+services+" dev hub0")
}

// lay lays the wire and returns the file of the node's network.
func (w wire) lay(ctx context.Context) (string, error) {
	if err := ip(ctx,
		"netns add "+w.name,
		"link add "+w.near+" type veth peer name "+w.far+" netns "+w.name,
		"address add "+w.gateway+"/30 dev "+w.near,
		"link set "+w.near+" up",
		"-n "+w.name+" address add "+w.address+"/30 dev "+w.far,
		"-n "+w.name+" link set "+w.far+" up",
		"-n "+w.name+" link set lo up",
		"-n "+w.name+" route add default via "+w.gateway,
		// As a control plane reaches the Pods of its nodes.
		"route add "+w.pods+" via "+w.address,
	); err != nil {
		return "", err
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		name := filepath.Join("/proc/sys/net", family, "conf/all/forwarding")
		if err := os.WriteFile(name, []byte("1"), 0o644); err != nil {
			return "", err
		}
	}
	return "/run/netns/" + w.name, nil
}

func ip(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

const (
	pauseImage = "example.org/pause:test"
	// shellImage has busybox: a shell, tar, a web server.
	shellImage = "example.org/shell:test"
)

// makeImages writes the images of what is not ours: one static program does for both.
func makeImages() []string {
	GinkgoHelper()
	busybox, err := exec.LookPath("busybox")
	Expect(err).NotTo(HaveOccurred())
	program, err := os.ReadFile(busybox)
	Expect(err).NotTo(HaveOccurred())
	pause, shell := filepath.Join(work, "pause.tar"), filepath.Join(work, "shell.tar")
	Expect(writeImage(pause, pauseImage, program, "tail", "-f", "/dev/null")).To(Succeed())
	Expect(writeImage(shell, shellImage, program, "sh")).To(Succeed())
	return []string{pause, shell}
}

// writeImage writes an image with busybox as `docker save` would.
func writeImage(path, name string, busybox []byte, command ...string) error {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	for _, folder := range []string{"bin/", "tmp/", "www/"} {
		if err := files.WriteHeader(&tar.Header{Name: folder, Typeflag: tar.TypeDir, Mode: 0o777}); err != nil {
			return err
		}
	}
	if err := addFile(files, "bin/busybox", 0o755, busybox); err != nil {
		return err
	}
	for _, program := range []string{"sh", "cat", "tar", "tail", "sleep", "httpd", "sha256sum", "touch", "id"} {
		if err := files.WriteHeader(&tar.Header{Name: "bin/" + program, Typeflag: tar.TypeSymlink, Linkname: "busybox"}); err != nil {
			return err
		}
	}
	if err := files.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(layer.Bytes())
	config, err := json.Marshal(map[string]any{
		"architecture": architecture, "os": "linux",
		"config": map[string]any{"Entrypoint": command, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	parts := tar.NewWriter(&archive)
	for _, part := range []struct {
		name string
		data []byte
	}{{"config.json", config}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		if err := addFile(parts, part.name, 0o644, part.data); err != nil {
			return err
		}
	}
	if err := parts.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o600)
}

func addFile(to *tar.Writer, name string, mode int64, data []byte) error {
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := to.Write(data)
	return err
}
