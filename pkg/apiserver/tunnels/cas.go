// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"crypto/x509"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// CAs are those of a PEM file, followed as it changes while Run runs.
type CAs struct {
	file *dynamiccertificates.DynamicFileCAContent
}

// FollowCAs reads the file. The purpose names it in messages: it is the flag that gave it.
func FollowCAs(purpose, path string) (*CAs, error) {
	file, err := dynamiccertificates.NewDynamicCAContentFromFile(purpose, path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", purpose, err)
	}
	return &CAs{file: file}, nil
}

// Run follows the file until the context ends. What cannot be read leaves the CAs as they were.
func (c *CAs) Run(ctx context.Context) error {
	c.file.Run(ctx, 1)
	return nil
}

// Pool returns the CAs that the file holds now.
func (c *CAs) Pool() (*x509.CertPool, error) {
	options, ok := c.file.VerifyOptions()
	if !ok {
		return nil, fmt.Errorf("%s holds no certificate", c.file.Name())
	}
	return options.Roots, nil
}
