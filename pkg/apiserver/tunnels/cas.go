// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"context"
	"crypto/x509"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// CAs holds the CAs of a PEM file. While Run runs, it follows changes of the file.
type CAs struct {
	file *dynamiccertificates.DynamicFileCAContent
}

// FollowCAs reads the file. The purpose appears in messages: it is the flag that names the file.
func FollowCAs(purpose, path string) (*CAs, error) {
	file, err := dynamiccertificates.NewDynamicCAContentFromFile(purpose, path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", purpose, err)
	}
	return &CAs{file: file}, nil
}

// Run follows the file until the context ends. If the file cannot be read, the previous CAs remain.
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
