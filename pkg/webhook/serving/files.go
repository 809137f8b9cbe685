// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/utils/clock"
)

// maxFileBytes is more than any certificate, key or bundle has.
const maxFileBytes = 1 << 20

// FromFiles serves the certificate and key of two PEM files, verified by the CA bundle of a third,
// and follows changes of the files.
func FromFiles(cert, key, ca string) *Certificates {
	return newCertificates(fileSource{cert: cert, key: key, ca: ca}, clock.RealClock{})
}

type fileSource struct{ cert, key, ca string }

func (s fileSource) String() string { return fmt.Sprintf("serving certificate of file %s", s.cert) }

// load refuses files that do not belong together: they may be half written.
func (s fileSource) load(context.Context) (material, error) {
	var found material
	for _, file := range []struct {
		path string
		into *[]byte
	}{{s.cert, &found.cert}, {s.key, &found.key}, {s.ca, &found.bundle}} {
		content, err := readBounded(file.path)
		if err != nil {
			return material{}, fmt.Errorf("reading %s: %w", file.path, err)
		}
		*file.into = content
	}
	return found, nil
}

var errTooLarge = errors.New("it has more than 1 MiB")

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(content) > maxFileBytes {
		err = errTooLarge
	}
	return content, err
}
