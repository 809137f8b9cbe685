// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// archived is an archive with one member.
func archived(t *testing.T, member, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	members := tar.NewWriter(zipped)
	if err := members.WriteHeader(&tar.Header{Name: member, Mode: 0o600, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(members, content); err != nil {
		t.Fatal(err)
	}
	if err := members.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// testDownloader downloads into folders of its own.
func testDownloader(t *testing.T) downloader {
	t.Helper()
	folder := t.TempDir()
	return downloader{
		client: newClient(), patience: time.Minute, stall: time.Minute,
		store: filepath.Join(folder, "store"), links: filepath.Join(folder, "bin"), out: io.Discard,
	}
}

// serve serves one program, "etcd", and returns its row.
func serve(t *testing.T, handler http.HandlerFunc) file {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return file{program: "etcd", version: "v1.2.3", algorithm: "sha256", sum: sumOf([]byte("etcd")), url: server.URL}
}

func write(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
}

// names are the names of the files in a folder.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func TestInstall_LinksVerifiedPrograms(t *testing.T) {
	archive := archived(t, "release/bin/etcd", "etcd")
	sum := sha512.Sum512(archive)
	plain, member := serve(t, write([]byte("kubectl"))), serve(t, write(archive))
	plain.program, plain.sum = "kubectl", sumOf([]byte("kubectl"))
	member.algorithm, member.sum, member.member = "sha512", hex.EncodeToString(sum[:]), "release/bin/etcd"
	d := testDownloader(t)
	if err := os.MkdirAll(d.links, 0o755); err != nil {
		t.Fatal(err)
	}
	// As after a build: a link to the binary with all programs.
	if err := os.Symlink("kube", filepath.Join(d.links, "kubectl")); err != nil {
		t.Fatal(err)
	}
	if err := d.install(t.Context(), []file{plain, member}); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"kubectl", "etcd"} {
		path := filepath.Join(d.links, program)
		content, err := os.ReadFile(path)
		if err != nil || string(content) != program {
			t.Errorf("%s: content %q, error %v", program, content, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: info %v, error %v; want an executable", program, info, err)
		}
		if target, err := os.Readlink(path); err != nil || target != "../store/"+program+"-v1.2.3" {
			t.Errorf("%s: links to %q, error %v", program, target, err)
		}
	}
	if found := names(t, d.store); len(found) != 2 {
		t.Errorf("the store has %q, want the two programs alone", found)
	}
}

func TestInstall_StoresNothingUnverified(t *testing.T) {
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		if r.Method != http.MethodHead {
			_, _ = w.Write([]byte("et"))
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		stall   time.Duration
		member  string
		want    string
	}{
		"another content":    {handler: write([]byte("worm")), want: "instead of the pinned"},
		"a truncated file":   {handler: half, want: "unexpected EOF"},
		"a missing file":     {handler: http.NotFound, want: "404"},
		"no such member":     {handler: write([]byte("etcd")), member: "bin/etcd", want: "extracting bin/etcd"},
		"a stalled download": {handler: stalling, stall: 50 * time.Millisecond, want: "no bytes for 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			good, bad := serve(t, write([]byte("etcd"))), serve(t, c.handler)
			good.program, bad.member = "first", c.member
			d := testDownloader(t)
			if c.stall > 0 {
				d.stall = c.stall
			}
			err := d.install(t.Context(), []file{good, bad})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if found := names(t, d.links); len(found) > 0 {
				t.Errorf("linked %q", found)
			}
			if found := names(t, d.store); !slices.Equal(found, []string{"first-v1.2.3"}) {
				t.Errorf("stored %q, want the verified file alone", found)
			}
		})
	}
}

// stalling sends a part and waits for the client to give up.
func stalling(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write([]byte("et"))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestInstall_FailsAtOnceWithoutNetwork(t *testing.T) {
	d := testDownloader(t)
	f := serve(t, nil)
	closed := httptest.NewServer(nil)
	closed.Close()
	f.url = closed.URL
	err := d.install(t.Context(), []file{f})
	if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(closed.URL, "http://")+" cannot be reached: dial tcp") {
		t.Errorf("error %v, want the server that cannot be reached", err)
	}
}

func TestInstall_DoesNotWaitForASilentServer(t *testing.T) {
	d := testDownloader(t)
	d.patience = 50 * time.Millisecond
	var requests atomic.Int32
	f := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		<-r.Context().Done()
	})
	if err := d.install(t.Context(), []file{f}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("error %v, want a server that cannot be reached", err)
	}
	if err := d.install(t.Context(), []file{f}); err == nil || !strings.Contains(err.Error(), "no server could be reached") {
		t.Errorf("error %v, want the earlier failure", err)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want one for several sets", n)
	}
	// Later it tries again.
	old := time.Now().Add(-2 * memory)
	if err := os.Chtimes(filepath.Join(d.store, unreachable), old, old); err != nil {
		t.Fatal(err)
	}
	d.patience = time.Minute
	again := serve(t, write([]byte("etcd")))
	if err := d.install(t.Context(), []file{again}); err != nil {
		t.Error(err)
	}
}

func TestRun_WithoutSumsForThePlatform(t *testing.T) {
	err := run(t.Context(), testDownloader(t), "kube", "plan9/386")
	if err == nil || !strings.Contains(err.Error(), `no sums of "kube" for plan9/386 are pinned`) {
		t.Errorf("error %v, want the missing sums", err)
	}
}

func TestParse_RefusesRowsThatPinNothing(t *testing.T) {
	for name, row := range map[string]string{
		"too few fields":      "kube etcd v1 linux/amd64 https://x",
		"no sum":              "kube etcd v1 linux/amd64 sha256: https://x",
		"a short sum":         "kube etcd v1 linux/amd64 sha256:00ff https://x",
		"another algorithm":   "kube etcd v1 linux/amd64 md5:" + strings.Repeat("0", 32) + " https://x",
		"not the algorithm's": "kube etcd v1 linux/amd64 sha512:" + strings.Repeat("0", 64) + " https://x",
	} {
		if files, err := parse(row); err == nil {
			t.Errorf("%s: %v", name, files)
		}
	}
}
