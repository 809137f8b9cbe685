// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"io"
	"os"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// maxCredentials limits a file of credentials to the size of a Secret.
const maxCredentials = 1 << 20

// ReadCredentials reads the credentials of registries, by host and port: the JSON that `helm
// registry login` and `docker login` write and that a Secret of type kubernetes.io/dockerconfigjson
// holds. It does not run credential helpers.
func ReadCredentials(path string) (auth.CredentialFunc, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of registries: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	text, err := io.ReadAll(io.LimitReader(file, maxCredentials))
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of registries: %w", err)
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig(text)
	if err != nil {
		// The reason may quote a password.
		return nil, errors.New("reading the credentials of registries: " + path + ` is not of the form {"auths": {"host": {"auth": base64 of user:password}}}, as helm registry login writes it`)
	}
	return credentials.Credential(store), nil
}
