// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// largest bounds a download, and a program in it.
const largest = 1 << 30

// fetch downloads a file, compares its sum, and stores the program in it. It returns the file's size.
func (d downloader) fetch(ctx context.Context, f file) (int64, error) {
	downloaded, err := os.CreateTemp(d.store, ".download-*")
	if err != nil {
		return 0, fmt.Errorf("making a file for %s: %w", f.program, err)
	}
	defer func() {
		_ = downloaded.Close()
		_ = os.Remove(downloaded.Name())
	}()
	hash := f.newHash()
	size, err := d.copy(ctx, f.url, io.MultiWriter(downloaded, hash))
	if err != nil {
		return 0, fmt.Errorf("downloading %s: %w", f.url, err)
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != f.sum {
		return 0, fmt.Errorf("%s has the sum %s instead of the pinned %s", f.url, sum, f.sum)
	}
	program := downloaded
	if f.member != "" {
		if program, err = d.extract(f, downloaded); err != nil {
			return 0, fmt.Errorf("extracting %s from %s: %w", f.member, f.url, err)
		}
		defer func() { _ = program.Close() }()
	}
	if err := program.Chmod(0o755); err != nil {
		return 0, fmt.Errorf("storing %s: %w", f.program, err)
	}
	if err := os.Rename(program.Name(), d.path(f)); err != nil {
		return 0, fmt.Errorf("storing %s: %w", f.program, err)
	}
	return size, nil
}

// copy ends a download that stalls.
func (d downloader) copy(ctx context.Context, url string, to io.Writer) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return 0, cause(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return 0, errors.New(response.Status)
	}
	stalled := time.AfterFunc(d.stall, func() { cancel(fmt.Errorf("no bytes for %s", d.stall)) })
	defer stalled.Stop()
	size, err := io.Copy(to, &progress{from: io.LimitReader(response.Body, largest), again: func() { stalled.Reset(d.stall) }})
	if ctx.Err() != nil {
		return size, context.Cause(ctx)
	}
	return size, err
}

// progress reports each read that brought bytes.
type progress struct {
	from  io.Reader
	again func()
}

func (p *progress) Read(into []byte) (int, error) {
	n, err := p.from.Read(into)
	if n > 0 {
		p.again()
	}
	return n, err
}

// extract stores one member of an archive whose sum was right.
func (d downloader) extract(f file, archive io.ReadSeeker) (*os.File, error) {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	members := tar.NewReader(unzipped)
	for {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is not in the archive")
		}
		if err != nil {
			return nil, err
		}
		if header.Name != f.member {
			continue
		}
		program, err := os.CreateTemp(d.store, ".download-*")
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(program, io.LimitReader(members, largest)); err != nil {
			return nil, errors.Join(err, program.Close(), os.Remove(program.Name()))
		}
		return program, nil
	}
}
